"""Masked accesses on every level of instructions, beside pages that nothing may touch."""

from __future__ import annotations

import struct
from pathlib import Path

import masked_accesses
import pytest
import triton
import triton.language as tl
from guest import PAGE, Guest, cannot_run
from trials import trial
from triton.backends.compiler import GPUTarget

from triton_porting_kit.compiler import ISA_LEVELS


@pytest.mark.parametrize("level", ISA_LEVELS)
def test_a_share_of_all_accesses(level: str, tmp_path: Path) -> None:
    trial("masked_accesses", level, 0, 800, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 4))
@pytest.mark.parametrize("level", ISA_LEVELS)
def test_a_larger_share_of_all_accesses(level: str, part: int, tmp_path: Path) -> None:
    assert trial("masked_accesses", level, part, 40, tmp_path)["run"] > 1000


def test_shares_are_parts_of_one_whole() -> None:
    whole = list(masked_accesses.cases(0, 1))
    shares = [case for part in range(7) for case in masked_accesses.cases(part, 7)]
    assert len(whole) == len(set(whole)) == len(shares) == len({case.name for case in shares})
    assert set(shares) == set(whole)


@triton.jit
def left_columns(X, Y, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEFT: tl.constexpr):
    r = tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, COLUMNS)[None, :]
    x = tl.load(X + r * COLUMNS + c, mask=(r < n) & (c < LEFT), other=1)
    tl.store(Y + r * COLUMNS + c, x)


@pytest.mark.parametrize("name", ISA_LEVELS)
def test_a_constant_bound_of_columns_under_a_row_mask(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last row that is wanted ends with its fourth column, and a page that nothing may touch begins."""
    rows, columns, left, n = 4, 8, 4, 3
    level = ISA_LEVELS[name]
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    signature = {"X": "*i64", "Y": "*i64", "n": "i32"} | dict.fromkeys(
        ("ROWS", "COLUMNS", "LEFT"), "constexpr"
    )
    source = triton.compiler.ASTSource(
        left_columns, signature, {"ROWS": rows, "COLUMNS": columns, "LEFT": left}
    )
    kernel = triton.compile(source, target=GPUTarget("cpu", level.arch, 1), options=level.options())
    if reason := cannot_run(level):
        pytest.skip(f"compiled only: {reason}")
    with Guest(level.target()) as guest:
        before = guest.allocate(2 * PAGE, PAGE)
        guest.protect(before + PAGE, PAGE, 0)
        x = before + PAGE - 8 * ((n - 1) * columns + left)
        y, block = guest.allocate(8 * rows * columns), guest.allocate(24)
        values = range(100, 100 + (n - 1) * columns + left)
        guest.view(x, 8 * len(values))[:] = struct.pack(f"{len(values)}q", *values)
        guest.view(block, 24)[:] = struct.pack("qqi4x", x, y, n)
        symbols = guest.load(kernel.asm["obj"])
        scratch = guest.allocate(
            struct.unpack("q", guest.view(symbols["left_columns__scratch_bytes"], 8))[0], 64
        )
        assert guest.call(symbols["left_columns"], block, scratch) == 0
        got = struct.unpack(f"{rows * columns}q", guest.view(y, 8 * rows * columns))
    wanted = [100 + i if i < n * columns and i % columns < left else 1 for i in range(rows * columns)]
    assert list(got) == wanted

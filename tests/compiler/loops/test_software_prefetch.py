"""What is fetched for later steps and iterations of a loop, and where nothing is. Results do not depend on it."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops.matmul import register_blocking, software_prefetch
from triton_porting_kit.compiler.loops.tiles import lane_memory

Array = np.ndarray[Any, Any]
CACHES = (lane_memory.L1, lane_memory.L2)
FETCH = re.compile(
    r'"llvm\.intr\.prefetch"\((%\w+)\) <\{[^}]*hint = (\d)[^}]*rw = (\d)[^}]*\}> : \(!llvm\.ptr\) -> \(\)'
)

SIGNATURE = {"A": "*bf16", "B": "*bf16", "C": "*fp32", "count": "i32", "pitch": "i32"}
SHAPES = [(1, 64, 32), (16, 16, 16), (32, 32, 32), (64, 64, 32), (128, 128, 128), (32, 128, 64)]
X86 = CpuTarget.named("znver4")


@triton.jit
def products(A, B, C, count, pitch, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a_at = A + m * pitch + k[None, :]
    b_at = B + k[:, None] + n * pitch if FORM == "columns" else B + k[:, None] * pitch + n
    total = tl.zeros((M, N), tl.float32)
    for i in range(count):
        b = tl.load(b_at)
        if FORM == "computed":
            b = b * 2
        total = tl.dot(tl.load(a_at), b, total)
        a_at += K
        if FORM == "columns":
            b_at += K
        elif FORM == "squares":
            b_at += i * pitch
        else:
            b_at += K * pitch
    tl.store(C + m * N + n, total)


def fetches(
    form: str, shape: tuple[int, int, int] = (64, 64, 32), target: CpuTarget = X86
) -> tuple[int, int, int]:
    """How many fetches there are in the code: into L1, into L2, and for the result."""
    m, n, k = shape
    loops: Any = native_functions.loops_of(products, SIGNATURE, target, FORM=form, M=m, N=n, K=k)
    found = [(int(cache), int(writes)) for _, cache, writes in FETCH.findall(loops.text)]
    return (
        found.count((lane_memory.L1, 0)),
        found.count((lane_memory.L2, 0)),
        found.count((lane_memory.L2, 1)),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_few_lines_are_fetched_at_a_time(shape: tuple[int, int, int]) -> None:
    rows, lines, stored = fetches("rows", shape)
    block = register_blocking.blocking(X86, *shape[:2], "f32")
    assert rows == block.rows
    assert 1 <= lines <= software_prefetch.MOST
    assert stored == rows * block.strip * 4 // lane_memory.LINE


@pytest.mark.parametrize("form", ["columns", "computed", "squares"])
def test_where_the_right_factor_goes_on_must_be_known(form: str) -> None:
    rows, lines, _ = fetches(form)
    assert rows > 0
    assert lines == 0


@pytest.mark.parametrize(
    "target",
    [CpuTarget.portable(64), CpuTarget.named("neoverse-v1"), CpuTarget.named("sapphirerapids")],
    ids=["c++", "arm", "matrix registers"],
)
def test_other_processors_are_left_to_themselves(target: CpuTarget) -> None:
    assert fetches("rows", target=target) == (0, 0, 0)


@pytest.mark.parametrize(
    ("target", "element", "multiply", "blocks"),
    [(X86, "bf16", "vdpbf16ps", 1), (CpuTarget.named("haswell"), "fp32", "vfmadd", 2)],
    ids=["avx512", "avx2"],
)
def test_the_inner_loop_does_nothing_but_multiply(
    target: CpuTarget, element: str, multiply: str, blocks: int
) -> None:
    """It loads and multiplies, moves on in A and in B, and compares; no address is computed."""
    signature = SIGNATURE | {"A": f"*{element}", "B": f"*{element}"}
    loops = native_functions.loops_of(products, signature, target, FORM="rows", M=64, N=64, K=32)
    text = codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), target)
    assert ("prefetcht0" in text) == (target is X86)
    assert "prefetcht1" in text
    bodies = [body for body in re.split(r"\n\.L\w+:|\tj\w+\t", text) if multiply in body]
    assert len(bodies) == blocks
    for body in bodies:
        names = [line.split()[0] for line in body.splitlines() if line.startswith("\t")]
        scalar = [name for name in names if not name.startswith("v")]
        assert len(scalar) == 3
        assert scalar[-1] == "cmpq"


class Fetched:
    """The function of `products` of float32, for one program after the other, and what it fetches."""

    M, N, K = 64, 128, 32

    def __init__(self, target: CpuTarget) -> None:
        signature = SIGNATURE | {"A": "*fp32", "B": "*fp32"}
        self.loops: Any = native_functions.loops_of(
            products, signature, target, FORM="rows", M=self.M, N=self.N, K=self.K
        )
        text, count = FETCH.subn(r"llvm.call @fetch_\2(\1) : (!llvm.ptr) -> ()", self.loops.text)
        assert count
        declared = "".join(f"llvm.func @fetch_{cache}(!llvm.ptr)\n" for cache in CACHES)
        text = text.replace("module {\n", f"module {{\n{declared}", 1)
        self.lines: dict[int, set[int]] = {cache: set() for cache in CACHES}
        note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.notes = {
            cache: note(lambda address, cache=cache: self.lines[cache].add(address // lane_memory.LINE))
            for cache in CACHES
        }
        imports = {
            f"fetch_{cache}": ctypes.cast(function, ctypes.c_void_p).value or 0
            for cache, function in self.notes.items()
        }
        self.code = native_functions.link(text, [self.loops.name], target, imports)
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.code.addresses[self.loops.name])
        self.scratch = aligned(self.loops.scratch_bytes, np.uint8)
        self.scratch[:] = 0

    def __call__(self, a: Array, b: Array, c: Array, begin: int) -> None:
        """Run the program `begin`, of two."""
        block = np.zeros(32, np.uint8)
        block[:24].view(np.uint64)[:] = [array.ctypes.data for array in (a, b, c)]
        block[24:].view(np.int32)[:] = [b.shape[0] // self.K, a.shape[1]]
        for lines in self.lines.values():
            lines.clear()
        assert self.run(block.ctypes.data, self.scratch.ctypes.data, begin, begin + 1, 2, 1, 1) == 0


def aligned(size: int, dtype: Any) -> Array:
    """An array that begins with a line of memory."""
    memory = np.zeros(size * np.dtype(dtype).itemsize + lane_memory.LINE, np.uint8)
    start = -memory.ctypes.data % lane_memory.LINE
    return memory[start : start + size * np.dtype(dtype).itemsize].view(dtype)


def lines_of(array: Array) -> set[int]:
    """All lines of memory that the rows of an array touch."""
    return {
        line
        for row in array
        for line in range(
            row.ctypes.data // lane_memory.LINE,
            (row.ctypes.data + row.nbytes - 1) // lane_memory.LINE + 1,
        )
    }


@pytest.mark.skipif(
    not native_functions.host().triple.startswith("x86_64"), reason="nothing is fetched there"
)
@pytest.mark.parametrize("without", ["-avx512f,-amx-tile", "-amx-tile"])
def test_what_comes_next_is_fetched(without: str) -> None:
    target = native_functions.host().with_features(without)
    fetched = Fetched(target)
    m, n = fetched.M, fetched.N
    block = register_blocking.blocking(target, m, n, "f32", several=True)
    panel = target.strip_bytes() // block.strip // 4 // fetched.K * fetched.K
    panel = min(panel, target.caches.panel_bytes // n // 4)
    most = min(1536, target.caches.kept_bytes // n // 4 - panel)  # the last one holds what does not fit
    size = most // panel * panel  # strips of a last panel that is not full would not follow each other
    assert panel < size
    generator = np.random.default_rng(0)
    # What lies behind the last rows of A is fetched, too.
    shapes = ((m + block.rows, size), (size, size), (m, n))
    a, b, c = (aligned(x * y, np.float32).reshape(x, y) for x, y in shapes)
    a = a[:m]
    a[:], b[:] = (generator.integers(-4, 4, array.shape) for array in (a, b))

    fetched(a, b, c, 0)
    np.testing.assert_array_equal(c, a @ b[:, :n])
    first, second = (fetched.lines[cache] for cache in CACHES)
    assert not first
    assert lines_of(a[block.rows :]) <= second
    assert lines_of(b[panel:, :n]) <= second
    assert not lines_of(b[:panel]) & second
    stored = lines_of(c[block.rows :])
    assert stored <= second if "avx512f" in target.features else not stored & second

    # The next program finds the right factor packed, and fetches that.
    fetched(a, b, c, 1)
    np.testing.assert_array_equal(c, a @ b[:, :n])
    first, second = (fetched.lines[cache] for cache in CACHES)
    assert not first
    assert lines_of(a[block.rows :]) <= second
    assert not lines_of(b) & second
    packed = [
        b[k : k + panel, column : column + block.packed_strip].ravel()
        for k in range(panel, size, panel)
        for column in range(0, n, block.packed_strip)
    ]
    wanted = np.concatenate(packed)
    lines = np.array(sorted(second & lines_of(fetched.scratch[None]))[: wanted.nbytes // lane_memory.LINE])
    offsets = lines * lane_memory.LINE - fetched.scratch.ctypes.data
    found = np.concatenate([fetched.scratch[offset : offset + lane_memory.LINE] for offset in offsets])
    np.testing.assert_array_equal(found.view(np.float32), wanted)

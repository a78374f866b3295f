"""`tpk-linalg-opt`, called as backends call `triton-shared-opt`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import ttir_kernels
from cli_helpers import Tpk

from triton_porting_kit.cli.linalg_opt import linalg_of, main
from triton_porting_kit.toolchain import mlir

FLAG = "--triton-to-linalg-experimental"
TEXTS = Path(__file__).parent / "ttir"
"""TTIR as releases of Triton print it, by release and kernel: `ttir_kernels.py` wrote it."""
RELEASES = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ttir_kernels.CASES)
def test_texts_of_four_releases_become_one_form(name: str, release: str) -> None:
    text = (TEXTS / release / f"{name}.ttir").read_text(encoding="utf-8")
    made = linalg_of(text)
    mlir.parse_module(made)
    assert f"@{name}(" in made
    assert made == linalg_of(ttir_kernels.text(name))


@pytest.fixture
def source(tpk: Tpk, kernels: Path) -> Path:
    """TTIR as Triton prints it."""
    signature = "*fp32, *fp32, *fp32, i32"
    made = tpk("compile", f"{kernels}:add_kernel", "-s", signature, "-c", "BLOCK=64", "--emit", "ttir")
    path = kernels.parent / "tt.mlir"
    path.write_text(made.output, encoding="utf-8")
    return path


def test_ttir_becomes_the_form(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "ttshared.mlir"
    main([str(source), FLAG, "-o", str(target)])
    text = target.read_text(encoding="utf-8")
    mlir.parse_module(text)
    head = re.search(r"func\.func (?:public )?@add_kernel\((.*?)\) \{", text)
    assert head is not None
    assert re.findall(r"%arg\d+: ([^,{ ]+)", head[1]) == ["memref<*xf32>"] * 3 + ["i32"] * 7
    assert text.count("memref.copy") == 2
    assert "tt." not in text
    assert " loc(" not in text


def test_locations_on_demand(source: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    main([str(source), FLAG, "--mlir-print-debuginfo"])
    assert b"kernels.py" in capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FLAG, "--other-pass"], "unrecognized arguments: --other-pass"),
        (["--triton-to-linalg"], FLAG),
    ],
)
def test_other_options_are_refused_by_name(
    source: Path, arguments: list[str], message: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(source), *arguments])
    assert ended.value.code == 2
    assert message.encode() in capfdbinary.readouterr().err


def test_what_is_no_ttir_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tt.mlir"
    path.write_text("module { tt.nothing }", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main([str(path), FLAG])
    assert ended.value.code == 1
    assert "does not read the module as TTIR" in capsys.readouterr().err

"""`tpk-linalg-opt`, called as backends call `triton-shared-opt`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_helpers import Tpk

from triton_porting_kit.cli.linalg_opt import main
from triton_porting_kit.toolchain import mlir

FLAG = "--triton-to-linalg-experimental"


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

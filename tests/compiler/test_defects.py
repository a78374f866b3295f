"""IR that is not valid: found where it is made, and said as whose mistake it is."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, Pipeline, artefacts, codegen, cpu_pipeline, structured
from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.record import OVERRIDDEN
from triton_porting_kit.compiler.structured import importer
from triton_porting_kit.errors import CompilationError, CompilerDefect
from triton_porting_kit.toolchain import mlir


@triton.jit
def doubled(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n)
    tl.store(O + i, x * 2, mask=i < n)  # the store


STORE = next(
    number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if line.endswith("# the store")
)


@pytest.fixture(scope="module")
def ttir() -> str:
    return ttir_text(doubled, {"X": "*fp32", "O": "*fp32", "n": "i32"}, B=16)


@pytest.fixture
def pipeline() -> Pipeline:
    return cpu_pipeline(CpuTarget.host()).after("ttir")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def forgetful_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of a value that was never computed."""

    def write(access: Any, evaluation: Any, point: Any, value: Any) -> None:
        evaluation.builder.line(f"llvm.store %forgotten, {access.base.name} : f32, !llvm.ptr")

    monkeypatch.setattr(Access, "write", write)


def held(error: CompilerDefect, folder: Path) -> str:
    """The file that shows the defect."""
    (path,) = folder.iterdir()
    assert str(path) == error.artefact
    assert str(path) in str(error)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text()


@pytest.mark.usefixtures("forgetful_stores")
def test_loops_that_are_not_valid(ttir: str, pipeline: Pipeline, folder: Path) -> None:
    with pytest.raises(CompilerDefect, match="the stage loops made IR that is not valid") as raised:
        pipeline.run(ttir, {})
    error = raised.value
    assert "undeclared SSA value name" in error.message
    assert "this is a defect of the porting kit" in str(error)
    assert "overrides" not in str(error)
    assert error.operation == "tpk.store"
    assert error.location is not None
    assert (error.location.file, error.location.line) == (__file__, STORE)
    text = held(error, folder)
    with pytest.raises(mlir.ir.MLIRError, match="undeclared SSA value name"):
        mlir.parse_module(text)


def test_a_structured_form_that_is_not_valid(
    ttir: str, pipeline: Pipeline, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = importer._import_function

    def broken(types: Any, kernel: Any, promises: bool) -> None:
        block = kernel.regions[0].blocks[0]
        product = next(op for op in block.operations if op.operation.name == "arith.mulf")
        original(types, kernel, promises)
        product.operation.operands[0] = block.arguments[2]

    monkeypatch.setattr(importer, "_import_function", broken)
    with pytest.raises(CompilerDefect, match=r"the stage structured made IR .*MLIR's verifier") as raised:
        pipeline.run(ttir, {})
    error = raised.value
    assert (error.operation, error.location and error.location.line) == ("arith.mulf", STORE)
    assert "arith.mulf" in held(error, folder)


def test_what_the_importer_builds_is_verified(
    ttir: str, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(module: Any) -> None:
        raise InvalidIR("'tpk.load' op is wrong", "the text")

    monkeypatch.setattr(artefacts, "verify", refuse)
    with pytest.raises(InvalidIR) as raised:
        structured.import_ttir(ttir)
    assert (raised.value.text, raised.value.operation) == ("the text", "tpk.load")


def test_llvm_ir_that_is_not_valid(
    ttir: str, pipeline: Pipeline, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = mlir.to_llvm_ir
    monkeypatch.setattr(mlir, "to_llvm_ir", lambda module: original(module).replace("ret i32 0", "ret i64 0"))
    with pytest.raises(CompilerDefect, match="the stage llir made IR that is not valid: LLVM") as raised:
        pipeline.run(ttir, {})
    assert "ret i64 0" in held(raised.value, folder)


@pytest.mark.usefixtures("forgetful_stores")
def test_a_file_that_overrides_a_stage_is_blamed_where_there_is_one(
    ttir: str, pipeline: Pipeline, folder: Path
) -> None:
    with pytest.raises(CompilationError, match="a file that overrides the stage structured") as raised:
        pipeline.run(ttir, {OVERRIDDEN: ["structured"]})
    assert not isinstance(raised.value, CompilerDefect)
    assert raised.value.remedy == "correct that file, or remove it"
    assert list(folder.iterdir()) == []


def test_loops_of_a_file_that_cannot_be_lowered(pipeline: Pipeline) -> None:
    loops = 'module { llvm.func @f() { "vendor.do"() : () -> () llvm.return } }'
    with pytest.raises(CompilationError, match=r"vendor\.do.*a file that overrides the stage loops"):
        pipeline.after("loops").run(loops, {OVERRIDDEN: ["loops"]})


@pytest.mark.usefixtures("forgetful_stores")
def test_where_no_file_can_be_written(ttir: str, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    with pytest.raises(CompilerDefect, match="the IR could not be written to a file") as raised:
        pipeline.run(ttir, {})
    assert raised.value.artefact is None


def test_an_artefact_may_be_used_again(ttir: str, pipeline: Pipeline) -> None:
    """Stages change modules in place: who comes second gets the text."""
    target, before = CpuTarget.host(), pipeline.until("loops").run(ttir, {})
    loops, later = before["loops"], pipeline.after("loops")
    first, second = (later.run(loops, {}) for _ in range(2))
    assert str(first["llir"]) == str(second["llir"])
    assert first["obj"] == second["obj"] == codegen.emit_object(str(first["llir"]), target)
    again = pipeline.after("structured").until("loops")
    assert str(again.run(before["structured"], {})["loops"]) == str(loops)

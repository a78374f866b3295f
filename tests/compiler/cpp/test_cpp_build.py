"""Building C++: what the vendor's compiler says about it is said about the kernel's line."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import CPP_COMMAND, CpuTarget, cpp_pipeline, cpp_stages
from triton_porting_kit.errors import CompilationError


@triton.jit
def roots(X, O, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(X + at)
    y = tl.sqrt(x)
    tl.store(O + at, y)


@triton.jit
def matrix_product(A, C):
    i = tl.arange(0, 32)
    a = tl.load(A + i[:, None] * 32 + i[None, :])
    tl.store(C + i[:, None] * 32 + i[None, :], tl.dot(a, a))


def line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def text() -> str:
    source = ttir_text(roots, {"X": "*fp32", "O": "*fp32"}, B=64)
    return str(cpp_pipeline().after("ttir").until("cpp").run(source, {})["cpp"])


def build(text: str, *command: str, **options: Any) -> bytes:
    _, stage = cpp_stages(command or CPP_COMMAND, **options)
    return bytes(stage.run(text, {}))


def refused(text: str, *command: str, **options: Any) -> CompilationError:
    with pytest.raises(CompilationError) as caught:
        build(text, *command, **options)
    return caught.value


def stand_in(folder: Path, body: str) -> tuple[str, ...]:
    path = folder / "vendor-cc"
    path.write_text(f"import os, sys, time\nsource, result = sys.argv[1:3]\n{inspect.cleandoc(body)}\n")
    return (sys.executable, str(path), "{input}", "{output}")


def test_the_result_may_be_any_binary(text: str, tmp_path: Path) -> None:
    command = stand_in(tmp_path, "open(result, 'wb').write(b'CHIP' + open(source, 'rb').read())")
    assert build(text, *command, binary="bin") == b"CHIP" + text.encode()
    assert cpp_pipeline(command=command, binary="bin").names == ("ttir", "structured", "loops", "cpp", "bin")


def test_an_error_of_the_systems_compiler(text: str, tmp_path: Path) -> None:
    """The function is poisoned: it is an error wherever it is named, first where it is defined."""
    header = tmp_path / "poison.h"
    header.write_text("#pragma GCC poison square_root_f32x4\n")
    error = refused(text, *CPP_COMMAND, "-include", str(header))
    assert error.location is not None
    assert (error.location.file, error.location.line) == (__file__, line_of(roots, "tl.store"))
    assert "attempt to use poisoned" in str(error)
    assert "tl.store(O + at, y)" in str(error)


@pytest.mark.parametrize("style", ["{name}:{line}:7: error: {message}", "{name}({line}): error: {message}"])
def test_an_error_in_another_compilers_words(text: str, tmp_path: Path, style: str) -> None:
    body = f"""
    line = next(i for i, l in enumerate(open(source), 1) if "square_root_f32x4(v" in l)
    sys.exit({style!r}.format(name=source, line=line, message="no square roots on this chip"))
    """
    error = refused(text, *stand_in(tmp_path, body))
    assert error.location is not None
    assert error.location.line == line_of(roots, "tl.store")
    assert error.operation == "tpk.store"
    assert "no square roots on this chip" in str(error)
    assert "square_root_f32x4(v" in str(error)


def test_an_error_that_points_nowhere(text: str) -> None:
    error = refused(text, *CPP_COMMAND, "--no-such-option")
    assert error.location is None
    assert "--no-such-option" in str(error)
    error = refused("int x = ;", *CPP_COMMAND)
    assert "line 1 of the C++: int x = ;" in str(error)


def test_a_compiler_that_hangs_or_is_not_there(text: str, tmp_path: Path) -> None:
    assert "did not finish within 1 seconds" in str(
        refused(text, *stand_in(tmp_path, "time.sleep(60)"), timeout=1.0)
    )
    assert "'no-such-c++' was not found" in str(refused(text, "no-such-c++", "{input}", "{output}"))
    assert "wrote nothing to the file kernel.so" in str(refused(text, *stand_in(tmp_path, "pass")))
    assert "crashed: signal 11" in str(refused(text, *stand_in(tmp_path, "os.kill(os.getpid(), 11)")))


def test_a_target_whose_instructions_have_no_cpp() -> None:
    """Its loops ask for AVX512-BF16 by name. The error says which line asks, and what to do."""
    target = CpuTarget.named("znver4")
    source = ttir_text(matrix_product, {"A": "*bf16", "C": "*fp32"})
    pipeline = cpp_pipeline(target).after("ttir").until("cpp")
    with pytest.raises(CompilationError, match="cannot write") as caught:
        pipeline.run(source, {})
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == line_of(matrix_product, "tl.dot")
    assert "CpuTarget.portable()" in str(caught.value)


def test_an_operation_without_cpp() -> None:
    loops = """module {
  // kernel.py: /somewhere/kernel.py
  llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: i64, %d: i64, %e: i32, %f: i32, %g: i32) -> i32 {
    // tpk.store, kernel.py:12
    llvm.intr.debugtrap
    llvm.return %e : i32
  }
}"""
    with pytest.raises(CompilationError, match="this operation") as caught:
        cpp_pipeline().after("loops").until("cpp").run(loops, {})
    assert caught.value.operation == "llvm.intr.debugtrap"
    assert str(caught.value.location) == "/somewhere/kernel.py:12:0"


def test_text_that_is_no_mlir() -> None:
    with pytest.raises(CompilationError, match="not valid MLIR"):
        cpp_pipeline().after("loops").until("cpp").run("module {", {})


@pytest.mark.parametrize("size", [0, 8, 24, 128])
def test_vectors_of_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="16, 32 or 64"):
        CpuTarget.portable(size)


def test_no_files_are_left(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    build(text)
    refused("no C++", *CPP_COMMAND)
    assert os.listdir(tmp_path) == []

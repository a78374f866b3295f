"""C++ and C of whole kernels: built as shared objects, loaded by ctypes, called by the kernel ABI."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import C_COMMAND, CPP_COMMAND, CpuTarget, cpp_pipeline
from triton_porting_kit.conformance.language.source import make_kernel

Array = np.ndarray[Any, Any]


@triton.jit
def softmax(X, O, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    x = tl.load(X + row * n + columns, mask=columns < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(O + row * n + columns, e / tl.sum(e, 0), mask=columns < n)


@triton.jit
def scaled_sum(A, C, O, n, scale, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(O + at, tl.load(A + at, mask=at < n) * scale + tl.load(C + at, mask=at < n), mask=at < n)


@triton.jit
def product(A, B, C, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(A + m[:, None] * K + k[None, :])
    b = tl.load(B + k[:, None] * N + n[None, :])
    tl.store(C + m[:, None] * N + n[None, :], tl.dot(a, b))


class Library:
    """A kernel's shared object in this process."""

    def __init__(self, data: bytes, folder: Path, name: str) -> None:
        path = folder / "kernel.so"
        path.write_bytes(data)
        self.library, self.name = ctypes.CDLL(str(path)), name
        self.function = self.library[name]
        self.function.restype = ctypes.c_int32
        self.function.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3

    def constant(self, suffix: str, type: Any) -> Any:
        return type.in_dll(self.library, suffix if suffix.startswith("tpk") else self.name + suffix)

    def __call__(self, *values: Any, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
        block = b""
        for value in values:
            data = np.uint64(value.ctypes.data) if isinstance(value, np.ndarray) else value
            block += bytes(-len(block) % data.nbytes) + data.tobytes()
        block += bytes(-len(block) % 8)
        size = self.constant("__scratch_bytes", ctypes.c_int64).value
        memory = np.zeros(size + 64, np.uint8)
        scratch = memory.ctypes.data + -memory.ctypes.data % 64
        assert self.function(block, scratch, 0, int(np.prod(grid)), *grid) == 0


COMMANDS = {"cpp": CPP_COMMAND, "c": C_COMMAND}


def compiled(
    folder: Path,
    kernel: Any,
    signature: dict[str, str],
    *,
    vector_bytes: int = 16,
    fuse: bool = False,
    dialect: str = "cpp",
    **constexprs: Any,
) -> Library:
    pipeline = cpp_pipeline(
        CpuTarget.portable(vector_bytes), COMMANDS[dialect], fuse_multiply_add=fuse, dialect=dialect
    ).after("ttir")
    metadata: dict[str, Any] = {}
    artefacts = pipeline.run(ttir_text(kernel, signature, **constexprs), metadata)
    return Library(artefacts["so"], folder, metadata["name"])


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_softmax(tmp_path: Path, vector_bytes: int) -> None:
    kernel = compiled(
        tmp_path, softmax, {"X": "*fp32", "O": "*fp32", "n": "i32"}, B=64, vector_bytes=vector_bytes
    )
    x = np.random.default_rng(3).normal(size=(5, 50)).astype(np.float32)
    out = np.full((6, 50), 7, np.float32)
    kernel(x, out, np.int32(50), grid=(5, 1, 1))
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out[:5], e / e.sum(1, keepdims=True), rtol=1e-6)
    assert (out[5] == 7).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_product(tmp_path: Path, kind: Any) -> None:
    name = {np.float16: "*fp16", np.float32: "*fp32"}[kind]
    kernel = compiled(tmp_path, product, {"A": name, "B": name, "C": "*fp32"}, M=16, N=32, K=64)
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 8, shape).astype(kind) for shape in ((16, 64), (64, 32)))
    out = np.zeros((16, 32), np.float32)
    kernel(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("dialect", COMMANDS)
def test_the_abi(tmp_path: Path, dialect: str) -> None:
    signature = {"A": "*fp32", "C": "*fp32", "O": "*fp32", "n": "i32", "scale": "fp32"}
    kernel = compiled(tmp_path, scaled_sum, signature, B=32, dialect=dialect)
    assert kernel.constant("tpk_host_abi_version", ctypes.c_int32).value == 3
    assert list(kernel.constant("__pointers", ctypes.c_int32 * 4)) == [3, 0, 8, 16]
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(tmp_path / "kernel.so")], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names == {
        "scaled_sum", "scaled_sum__scratch_bytes", "scaled_sum__pointers", "tpk_host_abi_version"
    }  # fmt: skip


@pytest.mark.parametrize("dialect", COMMANDS)
@pytest.mark.parametrize("fuse", [False, True])
def test_products_are_fused_only_where_that_was_asked_for(tmp_path: Path, fuse: bool, dialect: str) -> None:
    """a * scale is not exact here: rounded on its own, it takes the sum to 0."""
    signature = {"A": "*fp32", "C": "*fp32", "O": "*fp32", "n": "i32", "scale": "fp32"}
    kernel = compiled(tmp_path, scaled_sum, signature, B=32, fuse=fuse, dialect=dialect)
    a = np.full(32, 1 + 2.0**-23, np.float32)
    c = -(a * a)
    exact = a.astype(np.float64) ** 2 + c
    out = np.zeros(32, np.float32)
    kernel(a, c, out, np.int32(32), np.float32(a[0]))
    np.testing.assert_array_equal(out, exact.astype(np.float32) if fuse else np.zeros(32, np.float32))
    assert exact.all()


@pytest.mark.parametrize(
    "name",
    [
        "double", "ptr", "main", "select", "_hidden", "v1", "k1", "tanh", "args", "mask4", "u32x4", "load_masked", "lanes",
        "tpk_support", "tpk_mask4", "splat_u32x4", "bool", "uint8_t", "INT64_MAX", "arg_n",
    ],
)  # fmt: skip
def test_names_of_kernels_that_mean_something_in_cpp(tmp_path: Path, name: str) -> None:
    body = "i = tl.arange(0, B)\n    tl.store(O + i, tl.load(X + i, mask=i < n, other=7))"
    kernel = make_kernel(f"def {name}(X, O, n, B: tl.constexpr):\n    {body}\n")
    dialect = "c" if name in ("double", "select", "splat_u32x4", "bool") else "cpp"
    library = compiled(tmp_path, kernel, {"X": "*i32", "O": "*i32", "n": "i32"}, B=8, dialect=dialect)
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    library(x, out, np.int32(5))
    assert (library.name, out.tolist()) == (name, [0, 1, 2, 3, 4, 7, 7, 7])


PARAMETERS = (
    "double", "args", "s", "arg_s", "v1", "k1", "u32", "mask4", "lanes", "é", "è", "_é", "__x", "_x", "x_2", "X", "ptr",
    "INT64_MAX",
)  # fmt: skip


@pytest.mark.parametrize("dialect", COMMANDS)
def test_names_of_parameters_that_mean_something_in_cpp(tmp_path: Path, dialect: str) -> None:
    """Words of C++ and of the text, names that spell alike, and letters that C++ has not: each is its own value."""
    stores = "".join(f"    tl.store(O + {k}, {name})\n" for k, name in enumerate(PARAMETERS))
    kernel = make_kernel(f"def numbers(O, {', '.join(PARAMETERS)}):\n{stores}")
    signature = {"O": "*i32", **dict.fromkeys(PARAMETERS, "i32")}
    library = compiled(tmp_path, kernel, signature, dialect=dialect)
    out = np.zeros(len(PARAMETERS), np.int32)
    library(out, *np.arange(100, 100 + len(PARAMETERS), dtype=np.int32))
    assert out.tolist() == [*range(100, 100 + len(PARAMETERS))]


@triton.jit
def read_tile(D, O, D_shape_0, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = D.load([1, 2])
    tl.store(O + i[:, None] * N + i[None, :], tile + D_shape_0)


def test_a_host_tensor_descriptor(tmp_path: Path) -> None:
    """Triton gives its shape and strides as parameters twice, under the same names."""
    kernel = compiled(
        tmp_path, read_tile, {"D": "tensordesc<i32[4,4]>", "O": "*i32", "D_shape_0": "i32"}, N=4
    )
    x, out = np.arange(5 * 8, dtype=np.int32).reshape(5, 8)[:, :5], np.full((4, 4), -1, np.int32)
    shape, strides = [5, 5], [8, 1]
    flags = [np.uint8(0), np.uint8(0)]
    kernel(
        x,
        *map(np.int64, shape + strides),
        *flags,
        *map(np.int32, shape),
        *map(np.int64, strides),
        out,
        np.int32(100),
    )
    expected = np.zeros((4, 4), np.int32)
    expected[:, :3] = x[1:5, 2:5]
    np.testing.assert_array_equal(out, expected + 100)


@pytest.mark.parametrize(("dialect", "standard"), [("cpp", "-std=c++17"), ("c", "-std=c99")])
def test_the_text_can_be_built_with_warnings_as_errors(tmp_path: Path, dialect: str, standard: str) -> None:
    """It is for people to read, and for compilers that are stricter than this one."""
    source = ttir_text(softmax, {"X": "*fp32", "O": "*fp32", "n": "i32"}, B=64)
    text = str(cpp_pipeline(dialect=dialect).after("ttir").until(dialect).run(source, {})[dialect])
    path = tmp_path / f"kernel.{dialect}"
    path.write_text(text)
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-variable", "-Wno-psabi"]
    command = [COMMANDS[dialect][0], standard, "-O1", *strict, "-c", str(path), "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"// {Path(__file__).name}: {__file__}" in text
    assert f"{Path(__file__).name}:{softmax.fn.__code__.co_firstlineno + 6}" in text
    assert "__builtin_ctz" not in text


def test_importing_the_compiler_builds_nothing() -> None:
    script = "import triton_porting_kit.compiler as c, sys; c.cpp_pipeline(); print('numba_cuda_mlir' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""Tensor constants whose elements differ, which upstream passes may make: read from the object file."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from native_functions import host, link

from triton_porting_kit.compiler.loops import lower_to_loops
from triton_porting_kit.toolchain import mlir

Run = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, *[ctypes.c_int32] * 3)

#: What is stored: the constant's type and literal, with the bytes of its elements.
CASES: dict[str, tuple[str, str, Any]] = {
    "i32": ("4xi32", "[1, -2, 3, 4]", np.array([1, -2, 3, 4], np.int32)),
    "i8": ("4xi8", "[1, -2, 3, 4]", np.array([1, -2, 3, 4], np.int8)),
    "i1": ("4xi1", "[true, false, false, true]", np.array([1, 0, 0, 1], np.uint8)),
    "f32": ("2x2xf32", "[[0.5, -1.0], [0x7FC00000, 2.0]]", np.array([0.5, -1, np.nan, 2], np.float32)),
    "bf16": ("4xbf16", "[1.0, 2.0, 3.0, -0.0]", np.array([0x3F80, 0x4000, 0x4040, 0x8000], np.uint16)),
    "f16": ("2x1x2xf16", "[[[1.0, 2.0]], [[3.0, -0.0]]]", np.array([1, 2, 3, -0.0], np.float16)),
    "f8E4M3FN": ("4xf8E4M3FN", "[1.0, -0.0, 448.0, 0x7F]", np.array([0x38, 0x80, 0x7E, 0x7F], np.uint8)),
    "f8E5M2": ("2x2xf8E5M2", "[[1.0, -2.0], [0x7C, 0.25]]", np.array([0x3C, 0xC0, 0x7C, 0x34], np.uint8)),
    "f8E5M2FNUZ": ("4xf8E5M2FNUZ", "[1.0, -2.0, 0x80, 0.0]", np.array([0x40, 0xC4, 0x80, 0], np.uint8)),
    "f8E4M3FNUZ": ("4xf8E4M3FNUZ", '"0x40C48000"', np.array([0x40, 0xC4, 0x80, 0], np.uint8)),
    "i64": (
        "4xi64",
        '"0x' + np.arange(4, dtype=np.int64).tobytes().hex() + '"',
        np.arange(4, dtype=np.int64),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_elements_of_a_constant(kind: str) -> None:
    type, literal, expected = CASES[kind]
    rank = type.count("x")
    strides = [1] * rank
    for d in reversed(range(rank - 1)):
        strides[d] = strides[d + 1] * int(type.split("x")[d + 1])
    names = "".join(f", %s{stride}" for stride in strides)
    constants = "".join(f"%s{s} = arith.constant {s} : i64\n" for s in dict.fromkeys(strides))
    text = f"""module attributes {{tpk.structured = 1 : i32}} {{
      func.func public @k(%p: !llvm.ptr) attributes {{tpk.kernel}} {{
        %zero = arith.constant 0 : i64
        {constants}
        %c = arith.constant dense<{literal}> : tensor<{type}>
        "tpk.store"(%p, %zero{names}, %c) {{operandSegmentSizes = array<i32: 1, 1, {rank}, 0, 0, 0, 0, 0, 1>}}
          : (!llvm.ptr, i64{", i64" * rank}, tensor<{type}>) -> ()
        return
      }}
    }}"""
    result = lower_to_loops(mlir.parse_module(text), host())
    out = np.full(expected.nbytes + 8, 0xA5, np.uint8)
    code = link(result.text, ["k"])
    block = np.array([out.ctypes.data], np.uint64)
    assert Run(code.addresses["k"])(block.ctypes.data, None, 0, 1, 1, 1, 1) == 0
    assert out[: expected.nbytes].tobytes() == expected.tobytes()
    assert (out[expected.nbytes :] == 0xA5).all()

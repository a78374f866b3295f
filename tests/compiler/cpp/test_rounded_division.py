"""Quotients rounded up and down, as C, against Python's integers."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from triton_porting_kit.compiler.cpp.dialects import C
from triton_porting_kit.compiler.cpp.module import emit

LOOPS = """module {{
  // kernel.py: /somewhere/kernel.py
  llvm.mlir.global external constant @k__scratch_bytes(dense<[0, 0]> : tensor<2xi64>) : !llvm.array<2 x i64>
  llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: i64, %d: i64, %e: i32, %f: i32, %g: i32) -> i32 {{
    %next = arith.constant {bytes} : i64
    %y_place = llvm.getelementptr %a[%next] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %x = llvm.load %a {{alignment = 1 : i64}} : !llvm.ptr -> {type}
    %y = llvm.load %y_place {{alignment = 1 : i64}} : !llvm.ptr -> {type}
    %q = arith.{name} %x, %y : {type}
    llvm.store %q, %a {{alignment = 1 : i64}} : {type}, !llvm.ptr
    %zero = arith.constant 0 : i32
    llvm.return %zero : i32
  }}
}}"""


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("name", ["floordivsi", "ceildivsi", "ceildivui"])
def test_a_rounded_quotient(name: str, bits: int, lanes: int, tmp_path: Path) -> None:
    kind = np.dtype(f"{'u' if name.endswith('ui') else ''}int{bits}")
    x, y = np.array([[7, 9, 6, 100], [2, 3, 4, 7]], kind)[:, :lanes]
    if kind.kind == "i":
        x[::2] *= -1
        y[1::2] *= -1
    type = f"i{bits}" if lanes == 1 else f"vector<{lanes}xi{bits}>"
    source, built = tmp_path / "k.c", tmp_path / "k.so"
    source.write_text(emit(LOOPS.format(name=name, type=type, bytes=lanes * bits // 8), C))
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", source, "-o", built], check=True)
    data = ctypes.create_string_buffer(np.concatenate([x, y]).tobytes())
    assert ctypes.CDLL(str(built)).k(data, None, *map(ctypes.c_int64, (0, 1)), 1, 1, 1) == 0
    found = np.frombuffer(data.raw, kind, lanes)
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    expected = [a // b if name == "floordivsi" else -(-a // b) for a, b in pairs]
    assert found.tolist() == expected

"""Running what a `LoopBuilder` writes: machine code called on NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops import lower_to_loops
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.toolchain.llvm import LinkedObject

Array = np.ndarray[Any, Any]
_numbers = itertools.count()


@functools.cache
def host() -> CpuTarget:
    return CpuTarget.host()


def link(
    text: str, names: list[str], target: CpuTarget | None = None, imports: dict[str, int] | None = None
) -> LinkedObject:
    """The symbols of a loops module, in this process."""
    ir = codegen.lower_to_llvm_ir(text)
    return LinkedObject(codegen.emit_object(ir, target or host()), names, imports)


def element_function(
    emit: Callable[[LoopBuilder, Value], Value],
    source: str,
    target: str,
    *,
    lanes: int = 16,
    converts_f16: bool = True,
    lookup_lanes: int = 0,
) -> Callable[[Array, Any], Array]:
    """What `emit` writes for a value of `lanes` elements of MLIR type `source`, on whole arrays.

    The array's length must be a multiple of `lanes`.
    """
    builder = LoopBuilder(converts_f16=converts_f16, lookup_lanes=lookup_lanes)
    x, out, count = Value("%x", "!llvm.ptr", 0), Value("%out", "!llvm.ptr", 0), Value("%count", "i64", 0)
    with builder.loop(builder.i64(0), count, builder.i64(lanes)) as loop:
        type = vector_type(source, lanes)
        place = builder.address(x, [loop.induction], source)
        value = builder.effect(f"llvm.load {place.name} {{alignment = 1 : i64}} : !llvm.ptr -> {type}", type)
        assert value is not None
        result = emit(builder, value)
        at = builder.address(out, [loop.induction], target)
        builder.effect(
            f"llvm.store {result.name}, {at.name} {{alignment = 1 : i64}} : {result.type}, !llvm.ptr"
        )
    name = f"elements_{next(_numbers)}"
    lines = "\n".join(builder.text())
    text = f"module {{ llvm.func @{name}(%x: !llvm.ptr, %out: !llvm.ptr, %count: i64) {{\n{lines}\nllvm.return\n}} }}"
    code = link(text, [name])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.addresses[name])

    def call(values: Array, dtype: Any) -> Array:
        assert values.size % lanes == 0
        values = np.ascontiguousarray(values)
        result = np.empty(values.shape, dtype)
        function(values.ctypes.data, result.ctypes.data, values.size)
        assert code  # the code lives as long as this
        return result

    return call


def scratch_of_a_program(loops: Any) -> int:
    """Bytes of scratch, without what is kept from one program to the next."""
    kept = re.search(r"%kept = llvm.getelementptr %scratch\[(\d+)\]", loops.text)
    return int(kept[1]) if kept else int(loops.scratch_bytes - loops.cleared_bytes)


def loops_of(
    kernel: Any, signature: dict[str, str], target: CpuTarget | None = None, **constexprs: Any
) -> Any:
    """The `LoopsResult` of a `@triton.jit` function."""
    from ttir_source import ttir_text

    module = import_ttir(ttir_text(kernel, signature, **constexprs), promises=True)
    return lower_to_loops(module, target or host())


def nearest_bf16(x: Array) -> Array:
    """Rounded to nearest even by arithmetic on whole numbers, NaN made quiet: patterns."""
    bits = x.view(np.uint32).astype(np.uint64)
    low, high = bits & 0xFFFF, bits >> 16
    up = (low > 0x8000) | ((low == 0x8000) & (high % 2 == 1))
    return np.where(np.isnan(x), high | 0x40, high + up).astype(np.uint16)

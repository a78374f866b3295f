"""Mathematical functions: which are expanded into arithmetic, and which call routines of the host.

`OPERATIONS` is the table of element-wise operations including those functions: upstream's ``math`` operations, and
``tpk.function``, whose attribute `name` is a key of `FUNCTIONS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from triton_porting_kit.compiler import libdevice
from triton_porting_kit.compiler.dialect.operations import Function
from triton_porting_kit.compiler.loops.arithmetic import (
    bit_functions,
    differences,
    elementary,
    elementwise,
    error_function,
)
from triton_porting_kit.compiler.loops.arithmetic.elementwise import Entry, narrow, widen
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes
from triton_porting_kit.compiler.loops.arithmetic.mode import Emit, Mode
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles.tensors import FUNCTION_COST

_PREFIX = "tpk_math_"

ROUTINES: dict[str, tuple[str, ...]] = {}
"""The host's routines that the tables below name, without prefix and suffix, and their type suffixes."""


def _wide(builder: LoopBuilder, operation: Operation, values: list[Value]) -> list[Value]:
    elements = (operand.type.element for operand in operation.operands)
    return [widen(builder, value, element) for value, element in zip(values, elements, strict=True)]


def _written(function: Callable[..., Lanes]) -> Emit:
    """A function on `Lanes`. For 16-bit floats it is computed in single precision."""

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        operands = [Lanes(builder, value) for value in _wide(builder, operation, values)]
        with builder.function():
            result = function(*operands).value
        element = operation.results[0].type.element
        if (
            element.startswith("i") and element != result.element
        ):  # a libdevice function may return a wider integer
            result = builder.cast("arith.extui", result, vector_type(element, result.lanes))
        return [narrow(builder, result, element)]

    return emit


def _routine(name: str, *suffixes: str) -> Emit:
    """The host's routine of that name, called for all lanes at once. The default suffixes are f32 and f64."""
    ROUTINES[name] = suffixes or ("f32", "f64")

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        element = operation.results[0].type.element
        operands = _wide(builder, operation, values)
        if element.startswith("f") or element == "bf16":
            kind = "f64" if element == "f64" else "f32"
        else:
            kind = element
        floats = {kind, *(operand.element for operand in operands)} & {"f32", "f64"}
        result = call(builder, mode, f"{_PREFIX}{name}_{max(floats)}", kind, operands)
        return [narrow(builder, result, element)]

    return emit


def call(builder: LoopBuilder, mode: Mode, routine: str, element: str, operands: list[Value]) -> Value:
    """Call ``routine(count, result, operands...)``. Lanes are passed in memory of the function's frame."""
    assert mode.data is not None
    lanes = operands[0].lanes
    # One frame is enough for all calls: each result is read before the next call.
    size = builder.i64(8 * lanes * (1 + 4))
    text = f"llvm.alloca {size.name} x i8 {{alignment = 64 : i64}} : (i64) -> !llvm.ptr"
    frame = builder.pure(text, "!llvm.ptr", (size,))
    places = []
    for index in range(1 + len(operands)):
        places.append(builder.address(frame, [builder.i64(8 * lanes * index)], "i8"))
    for operand, place in zip(operands, places[1:], strict=True):
        builder.effect(f"llvm.store {operand.name}, {place.name} : {operand.type}, !llvm.ptr")
    mode.data.call(routine, [builder.i64(lanes), *places])
    type = vector_type(element, lanes)
    result = builder.effect(f"llvm.load {places[0].name} : !llvm.ptr -> {type}", type)
    assert result is not None
    return result


def _single(function: Callable[..., Lanes], name: str, *, scalef: bool = False) -> Emit:
    """A function expanded for single precision; in double precision, the host's routine."""
    routine = _routine(name, "f64")

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        operands = _wide(builder, operation, values)
        if operands[0].element != "f32":
            return routine(builder, mode, operation, values)
        lanes = [Lanes(builder, operand) for operand in operands]
        with builder.function():
            result = function(*lanes, mode.has_scalef) if scalef else function(*lanes)
        return [narrow(builder, result.value, operation.results[0].type.element)]

    return emit


def _power(function: Callable[..., Lanes], name: str) -> Emit:
    """An exponential, of a number that may be known not to be above 0."""
    general = _single(function, name, scalef=True)
    no_positive = _single(functools.partial(function, no_positive=True), name, scalef=True)

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        chosen = no_positive if differences.never_positive(operation.operands[0]) else general
        return chosen(builder, mode, operation, values)

    return emit


def _circular(function: Callable[[Lanes], Lanes], name: str) -> Emit:
    """Sine or cosine. Large arguments, which are rare, go to the host's routine."""
    routine = _routine(name)

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        (operand,) = _wide(builder, operation, values)
        if operand.element != "f32":
            return routine(builder, mode, operation, values)
        x = Lanes(builder, operand)
        result = function(x)
        large = x.absolute() >= elementary.CIRCULAR_LIMIT
        some = large.value
        if large.value.is_vector:
            text = f"vector.reduction <or>, {some.name} : {some.type} into i1"
            some = builder.pure(text, "i1", (some,))

        def exactly() -> list[Value]:
            other = call(builder, mode, f"{_PREFIX}{name}_f32", "f32", [operand])
            return [builder.select(large.value, other, result.value)]

        (value,) = builder.if_else(some, exactly, lambda: [result.value])
        return [narrow(builder, value, operation.results[0].type.element)]

    return emit


def _conversion(name: str) -> Emit:
    rounding, element, unsigned = bit_functions.CONVERSIONS[name]
    return _written(
        functools.partial(bit_functions.to_integer, rounding=rounding, element=element, unsigned=unsigned)
    )


BITS = (
    "clz", "popc", "ffs", "brev", "byte_perm", "mulhi", "umulhi", "mul24", "umul24", "sad", "usad", "hadd", "uhadd",
    "rhadd", "urhadd", "isnan", "isinf", "isfinite", "signbit", "saturatef", "hiloint2double", "double2loint",
    "double2hiint", "rcp64h", "add_rn", "sub_rn", "mul_rn", "rcp_rn", "rsqrt_rn", "llrint", "llround",
)  # fmt: skip
"""Functions that are expanded on integers and bits."""
_DIRECTED = (
    "add", "sub", "mul", "div", "rcp", "sqrt", "fma", "double2float", "int2float", "uint2float", "ll2float",
    "ull2float", "ll2double", "ull2double",
)  # fmt: skip
_HOST = (
    "nextafter", "ldexp", "ilogb", "logb", "sinpi", "cospi", "rcbrt", "fmod", "remainder", "fdim", "hypot",
    "rhypot", "norm3d", "rnorm3d", "norm4d", "rnorm4d", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv",
    "tgamma", "lgamma", "j0", "j1", "y0", "y1", "jn", "yn", "cyl_bessel_i0", "cyl_bessel_i1",
)  # fmt: skip

FUNCTIONS: dict[str, Emit] = {
    **{name: _written(getattr(bit_functions, name)) for name in BITS},
    **{name: _conversion(name) for name in bit_functions.CONVERSIONS},
    **{f"{name}_{mode}": _routine(f"{name}_{mode}") for name in _DIRECTED for mode in ("rz", "rd", "ru")},
    **{name: _routine(name) for name in _HOST},
    "exp10": _single(elementary.exp10, "exp10", scalef=True),
}
"""The lowering of ``tpk.function``, by its `name`."""


def _function(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    name = Function(operation).name
    emit = FUNCTIONS.get(name)
    if emit is None:
        raise operation.unsupported(
            f"the CPU backend has no function {name}", "docs/libdevice.md lists the functions that it has"
        )
    return emit(builder, mode, operation, values)


_HOST_MATH = (
    "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "cbrt", "erfc", "atan2",
)  # fmt: skip

OPERATIONS: dict[str, Entry] = {
    **elementwise.OPERATIONS,
    **{f"math.{name}": Entry(_routine(name), FUNCTION_COST) for name in _HOST_MATH},
    **{
        f"math.{name}": Entry(_single(getattr(elementary, name), name), FUNCTION_COST)
        for name in ("log", "log2", "log10", "log1p", "expm1")
    },
    "math.tanh": Entry(_single(elementary.tanh, "tanh", scalef=True), FUNCTION_COST),
    **{
        f"math.{name}": Entry(_power(getattr(elementary, name), name), FUNCTION_COST)
        for name in ("exp", "exp2")
    },
    "math.erf": Entry(_single(error_function.erf, "erf", scalef=True), FUNCTION_COST),
    "math.sin": Entry(_circular(elementary.sin, "sin"), FUNCTION_COST),
    "math.cos": Entry(_circular(elementary.cos, "cos"), FUNCTION_COST),
    "math.powf": Entry(_single(elementary.pow, "pow"), FUNCTION_COST),
    "math.fpowi": Entry(_single(elementary.pow, "powi"), FUNCTION_COST),
    Function.OPERATION_NAME: Entry(_function, FUNCTION_COST),
}


@functools.cache
def signatures() -> dict[str, libdevice.Overload]:
    """The operand and result types of every routine that kernels may call, by the routine's symbol."""
    found = {}
    for function in libdevice.functions().values():
        for overload in function.overloads:
            name = function.meaning.removeprefix("math.")
            if name == "pow" and overload.operands[1] == "int32":
                name = "powi"
            suffix = "f64" if "fp64" in (overload.result, *overload.operands) else "f32"
            if suffix in ROUTINES.get(name, ()):
                found[f"{_PREFIX}{name}_{suffix}"] = overload
    return found

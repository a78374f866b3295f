"""What the executor adds: operations on elements that upstream's passes do not lower, or lower to code that traps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.dialect.interpreter.formats import FORMATS, Format
from triton_porting_kit.toolchain.mlir import ir

from .ascend import KINDS
from .expansion import Functions, Text
from .functions import symbol

_DIVISIONS = {
    "arith.divsi": True, "arith.remsi": True, "arith.floordivsi": True, "arith.ceildivsi": True,
    "arith.divui": False, "arith.remui": False, "arith.ceildivui": False,
}  # fmt: skip
"""Operations that trap on a divisor of 0; True: and on -1, where the quotient overflows."""
_INACCURATE = ("math.expm1", "math.log1p", "math.cbrt")
"""Functions that upstream expands with a large error near 0, or takes from the C library, whose `cbrt` has errors."""
_FAR = ["bf16", "f64"]
_NARROW = [element for element in FORMATS if element != "bf16"]


def make_lowerable(module: Any) -> None:
    """Rewrite such operations on scalars. A lane whose result is not used may have any divisor."""
    functions = Functions()
    found: list[tuple[Any, Callable[[Functions, Any], None]]] = []

    def visit(operation: Any) -> Any:
        name = operation.name
        if name in _DIVISIONS:
            found.append((operation, _safe_division))
        elif name == "arith.extf" and str(operation.operands[0].type) in _NARROW:
            found.append((operation, _decode))
        elif (
            name == "arith.extf" and [str(operation.operands[0].type), str(operation.results[0].type)] == _FAR
        ):
            found.append((operation, _extend))
        elif name in _INACCURATE:
            found.append((operation, _routine))
        elif name == "arith.truncf" and _is_rounded_here(operation):
            found.append((operation, _round))
        elif name in _BF16 and str(operation.results[0].type) == "bf16":
            found.append((operation, _BF16[name]))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for operation, rewrite in found:
        rewrite(functions, operation)
    functions.add_to(module)


def _safe_division(functions: Functions, operation: Any) -> None:
    body = Text()
    kind = str(operation.operands[1].type)
    one = body.constant("true" if kind == "i1" else 1, kind)
    traps = body.let(f"arith.cmpi eq, %a1, {body.constant('false' if kind == 'i1' else 0, kind)} : {kind}")
    if _DIVISIONS[operation.name]:
        minus = body.let(f"arith.cmpi eq, %a1, {body.constant(-1, kind)} : {kind}")
        least = body.constant(-(1 << (int(kind[1:]) - 1)) if kind != "index" else -(1 << 63), kind)
        overflows = body.let(f"arith.cmpi eq, %a0, {least} : {kind}")
        traps = body.let(f"arith.ori {traps}, {body.let(f'arith.andi {minus}, {overflows} : i1')} : i1")
    divisor = body.let(f"arith.select {traps}, {one}, %a1 : {kind}")
    (safe,) = functions.call(operation, "divisor", list(operation.operands), [kind], body, [divisor])
    operation.operands[1] = safe


def _routine(functions: Functions, operation: Any) -> None:
    kind = str(operation.results[0].type)
    external = symbol(operation.name.removeprefix("math."), [kind], kind)
    functions.declare(f"func.func private @{external}({kind}) -> {kind}")
    body = Text()
    value = body.let(f"func.call @{external}(%a0) : ({kind}) -> {kind}")
    _replace(functions, operation, "routine", body, value)


def _replace(functions: Functions, operation: Any, label: str, body: Text, value: str) -> None:
    kind = str(operation.results[0].type)
    (made,) = functions.call(operation, label, list(operation.operands), [kind], body, [value])
    operation.results[0].replace_all_uses_with(made)
    operation.erase()


def _decode(functions: Functions, operation: Any) -> None:
    """A float of 8 or 4 bits as a wider one, by its bits."""
    source, target = str(operation.operands[0].type), str(operation.results[0].type)
    form, body = FORMATS[source], Text()
    bits = form.exponent + form.mantissa + form.signed
    raw = body.let(f"arith.bitcast %a0 : {source} to i{bits}")
    pattern = body.let(f"arith.extui {raw} : i{bits} to i32")
    magnitude = _and(body, pattern, form.sign - 1)
    mantissa = _and(body, magnitude, (1 << form.mantissa) - 1)
    exponent = _shift(body, "shrui", magnitude, form.mantissa)
    normal = body.let(
        f"arith.addi {_shift(body, 'shli', exponent, 23)}, {_i32(body, (127 - form.bias) << 23)} : i32"
    )
    normal = body.let(f"arith.ori {normal}, {_shift(body, 'shli', mantissa, 23 - form.mantissa)} : i32")
    number = body.let(f"arith.bitcast {normal} : i32 to f32")
    if form.mantissa:
        unit = body.constant(repr(2.0 ** (1 - form.bias - form.mantissa)), "f32")
        small = body.let(f"arith.mulf {body.let(f'arith.uitofp {mantissa} : i32 to f32')}, {unit} : f32")
        number = _choose(body, "eq", exponent, 0, small, number)
    else:  # 2⁻¹²⁷ is a denormal of f32
        number = _choose(body, "eq", exponent, 0, _float(body, 0x00400000), number)
    if form.infinity is not None:
        number = _choose(body, "eq", magnitude, form.infinity, _float(body, 0x7F800000), number)
        number = _choose(body, "ugt", magnitude, form.infinity, _float(body, 0x7FC00000), number)
    if form.signed:
        negated = body.let(f"arith.negf {number} : f32")
        negative = body.let(f"arith.cmpi uge, {pattern}, {_i32(body, form.sign)} : i32")
        number = body.let(f"arith.select {negative}, {negated}, {number} : f32")
    if form.infinity is None and form.nan is not None:
        number = _choose(
            body, "eq", magnitude if form.signed_zero else pattern, form.nan, _float(body, 0x7FC00000), number
        )
    if target != "f32":
        number = body.let(f"arith.{'extf' if target == 'f64' else 'truncf'} {number} : f32 to {target}")
    _replace(functions, operation, "decode", body, number)


def _is_rounded_here(operation: Any) -> bool:
    source, target = str(operation.operands[0].type), str(operation.results[0].type)
    return (
        target in _NARROW
        or (source == "f64" and target in ("f16", "bf16"))
        or "roundingmode" in operation.attributes
    )


def _round(functions: Functions, operation: Any) -> None:
    """Rounding to a narrower float, by its bits."""
    source, target = str(operation.operands[0].type), str(operation.results[0].type)
    mode = str(operation.attributes["roundingmode"]) if "roundingmode" in operation.attributes else ""
    toward_zero = "toward_zero" in mode or mode.startswith("3")
    body = Text()
    _replace(
        functions, operation, "round", body, rounded(body, "%a0", source, target, toward_zero=toward_zero)
    )


def rounded(body: Text, value: str, source: str, target: str, *, toward_zero: bool) -> str:
    """A float rounded once to a narrower type, as docs/conversions.md says."""
    if source == "f64":
        value = _odd(body, value)
    elif source != "f32":
        value = body.let(f"arith.extf {value} : {source} to f32")
    form = FORMATS.get(target) or Format(5, 10, 15, infinity=0x7C00, nan=0x7E00, saturates=False)
    bits = form.exponent + form.mantissa + form.signed
    pattern = _encode(body, value, form, toward_zero)
    cut = body.let(f"arith.trunci {pattern} : i32 to i{bits}")
    return body.let(f"arith.bitcast {cut} : i{bits} to {target}")


def _odd(body: Text, value: str) -> str:
    """An f64 as the f32 toward zero, whose last bit says that something was cut off (see `formats.odd`)."""
    near = body.let(f"arith.truncf {value} : f64 to f32")
    back = body.let(f"math.absf {body.let(f'arith.extf {near} : f32 to f64')} : f64")
    magnitude = body.let(f"math.absf {value} : f64")
    bits = body.let(f"arith.bitcast {near} : f32 to i32")
    beyond = body.let(f"arith.cmpf ogt, {back}, {magnitude} : f64")
    lower = body.let(f"arith.subi {bits}, {_i32(body, 1)} : i32")
    toward = body.let(f"arith.select {beyond}, {lower}, {bits} : i32")
    exact = body.let(f"arith.cmpf ueq, {back}, {magnitude} : f64")
    marked = body.let(f"arith.ori {toward}, {_i32(body, 1)} : i32")
    return body.let(f"arith.bitcast {body.let(f'arith.select {exact}, {bits}, {marked} : i32')} : i32 to f32")


def _encode(body: Text, value: str, form: Format, toward_zero: bool) -> str:
    """The pattern of an f32 in a format, in an i32."""
    bits = body.let(f"arith.bitcast {value} : f32 to i32")
    size = _and(body, bits, 0x7FFFFFFF)
    shift = 23 - form.mantissa
    # Numbers as large as the smallest normal one: round the mantissa, which carries into the exponent.
    carried = size
    if not toward_zero:
        last = _and(body, _shift(body, "shrui", size, shift), 1)
        half = body.let(f"arith.addi {last}, {_i32(body, (1 << (shift - 1)) - 1)} : i32")
        carried = body.let(f"arith.addi {size}, {half} : i32")
    normal = body.let(
        f"arith.subi {_shift(body, 'shrui', carried, shift)}, {_i32(body, (127 - form.bias) << form.mantissa)} : i32"
    )
    if form.bias - 1 + form.mantissa > 127:  # bf16, whose denormals are denormals of f32: one rule for all
        result = _shift(body, "shrui", carried, shift)
    else:  # smaller numbers are multiples of the smallest one
        scale = body.constant(repr(2.0 ** (form.bias - 1 + form.mantissa)), "f32")
        magnitude = body.let(f"math.absf {value} : f32")
        units = body.let(f"arith.mulf {magnitude}, {scale} : f32")
        units = units if toward_zero else body.let(f"math.roundeven {units} : f32")
        smallest = _i32(body, (128 - form.bias) << 23)
        is_small = body.let(f"arith.cmpi ult, {size}, {smallest} : i32")
        bounded = body.let(f"arith.select {is_small}, {units}, {body.constant('0.0', 'f32')} : f32")
        small = body.let(f"arith.fptoui {bounded} : f32 to i32")
        result = body.let(f"arith.select {is_small}, {small}, {normal} : i32")
    beyond = form.largest if form.saturates or toward_zero or form.infinity is None else form.infinity
    result = _choose_i32(body, "ugt", result, form.largest, beyond, result)
    keeps = form.infinity is not None and (toward_zero or not form.saturates)
    result = _choose_i32(body, "eq", size, 0x7F800000, form.infinity if keeps else form.largest, result)
    if form.signed:
        sign = _shift(body, "shli", _shift(body, "shrui", bits, 31), form.exponent + form.mantissa)
        signed = body.let(f"arith.ori {result}, {sign} : i32")
        if not form.signed_zero:
            signed = _choose(body, "eq", result, 0, result, signed, "i32")
        result = signed
    if form.nan is not None:
        limit = 0x7F800000 if form.signed_zero else 0x7F7FFFFF
        result = _choose_i32(body, "ugt", size, limit, form.nan, result)
    return result


def _i32(body: Text, value: int) -> str:
    return body.constant(value - (1 << 32) if value >= 1 << 31 else value, "i32")


def _and(body: Text, value: str, mask: int) -> str:
    return body.let(f"arith.andi {value}, {_i32(body, mask)} : i32")


def _shift(body: Text, name: str, value: str, count: int) -> str:
    return body.let(f"arith.{name} {value}, {_i32(body, count)} : i32")


def _float(body: Text, bits: int) -> str:
    return body.let(f"arith.bitcast {_i32(body, bits)} : i32 to f32")


def _choose(body: Text, how: str, value: str, than: int, yes: str, no: str, kind: str = "f32") -> str:
    condition = body.let(f"arith.cmpi {how}, {value}, {_i32(body, than)} : i32")
    return body.let(f"arith.select {condition}, {yes}, {no} : {kind}")


def _choose_i32(body: Text, how: str, value: str, than: int, yes: int | None, no: str) -> str:
    assert yes is not None
    return _choose(body, how, value, than, _i32(body, yes), no, "i32")


def _extend(functions: Functions, operation: Any) -> None:
    body = Text()
    _replace(functions, operation, "extend", body, _extended(body, "%a0"))


def _extended(body: Text, value: str) -> str:
    """A bf16 as f64, by the one step that upstream expands and another one."""
    single = body.let(f"arith.extf {value} : bf16 to f32")
    return body.let(f"arith.extf {single} : f32 to f64")


def _fma(functions: Functions, operation: Any) -> None:
    """In f64, where the product is exact."""
    body = Text()
    a, b, c = (_extended(body, f"%a{i}") for i in range(3))
    exact = body.let(f"math.fma {a}, {b}, {c} : f64")
    _replace(functions, operation, "fma", body, rounded(body, exact, "f64", "bf16", toward_zero=False))


def _from_integer(functions: Functions, operation: Any) -> None:
    """Rounded once. Of an integer that f64 cannot hold, what lies below 12 bits becomes one of them: between two
    numbers of bf16 that is the same side of their middle.
    """
    kind, signed = str(operation.operands[0].type), operation.name == "arith.sitofp"
    body, value = Text(), "%a0"
    if kind == "i64":
        low = body.let(f"arith.andi {value}, {body.constant(0xFFF, kind)} : {kind}")
        high = body.let(f"arith.subi {value}, {low} : {kind}")
        is_exact = body.let(f"arith.cmpi eq, {low}, {body.constant(0, kind)} : {kind}")
        marked = body.let(f"arith.ori {high}, {body.constant(0x800, kind)} : {kind}")
        cut = body.let(f"arith.select {is_exact}, {high}, {marked} : {kind}")
        moved = body.let(f"arith.addi {value}, {body.constant(1 << 53, kind)} : {kind}") if signed else value
        limit = body.constant(1 << (54 if signed else 53), kind)
        fits = body.let(f"arith.cmpi ult, {moved}, {limit} : {kind}")
        value = body.let(f"arith.select {fits}, {value}, {cut} : {kind}")
    number = body.let(f"{operation.name} {value} : {kind} to f64")
    _replace(
        functions, operation, "from_integer", body, rounded(body, number, "f64", "bf16", toward_zero=False)
    )


def _update(functions: Functions, operation: Any) -> None:
    """An atomic operation on bf16, as one that tries again until no other has changed the element."""
    form = _UPDATES.get(KINDS[ir.IntegerAttr(operation.attributes["kind"]).value])
    if form is None:  # moves bits only
        return
    memref, indices = str(operation.operands[1].type), len(operation.operands) - 2
    places = ", ".join(f"%a{2 + number}" for number in range(indices))
    inner, body = Text(), Text()
    wide = inner.let(f"{form} %found, %wide : f32")
    value = rounded(inner, wide, "f32", "bf16", toward_zero=False)
    body.do("%wide = arith.extf %a0 : bf16 to f32")
    body.do(f"%before = memref.generic_atomic_rmw %a1[{places}] : {memref} {{")
    body.do("^bb0(%element: bf16):")
    body.do("%found = arith.extf %element : bf16 to f32")
    for line in inner.lines:
        body.do(line)
    body.do(f"memref.atomic_yield {value} : bf16")
    body.do("}")
    _replace(functions, operation, "update", body, "%before")


_UPDATES = {
    "addf": "arith.addf",
    "maximumf": "arith.maximumf",
    "maxnumf": "arith.maxnumf",
    "minimumf": "arith.minimumf",
    "minnumf": "arith.minnumf",
    "mulf": "arith.mulf",
}
"""Arithmetic by the kind of an atomic operation."""
_BF16 = {
    "memref.atomic_rmw": _update,
    "math.fma": _fma,
    "arith.sitofp": _from_integer,
    "arith.uitofp": _from_integer,
}
"""Operations with results of bf16 that upstream's passes leave to LLVM, or round twice."""

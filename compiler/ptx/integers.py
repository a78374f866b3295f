"""Integer arithmetic, logic and shifts, comparison and selection, and moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .floats import flushed
from .instruction import INTEGERS, Call, Instruction
from .values import Values, bits_of

ARITHMETIC = "Integer Arithmetic Instructions"
LOGIC = "Logic and Shift Instructions"
COMPARISON = "Comparison and Selection Instructions"
MOVEMENT = "Data Movement and Conversion Instructions"


def _binary(name: str) -> Callable[[Call], Any]:
    return lambda call: call.values.binary(name, call.read(0), call.read(1))


def _by_sign(name: str) -> Callable[[Call], Any]:
    """Upstream's operation for signed or for unsigned integers, whose names end in s and u."""
    return lambda call: call.values.binary(
        name + ("si" if call.is_signed else "ui"), call.read(0), call.read(1)
    )


def _saturated(name: str) -> Callable[[Call], Any]:
    def lower(call: Call) -> Any:
        v = call.values
        wide = v.binary(name, *(v.resized(call.read(k), 64, signed=True) for k in (0, 1)))
        clamped = v.binary("arith.maxsi", v.binary("arith.minsi", wide, 2**31 - 1), -(2**31))
        return v.resized(clamped, 32)

    return lower


def _product(v: Values, a: Any, b: Any, *, signed: bool) -> Any:
    """The whole product, of twice the width; of 64-bit factors, its upper half."""
    bits = bits_of(v.kind(a))
    if bits < 64:
        return v.binary(
            "arith.muli", v.resized(a, 2 * bits, signed=signed), v.resized(b, 2 * bits, signed=signed)
        )
    return v.function("mulhi" if signed else "umulhi", [a, b], "i64")


def _multiply(call: Call) -> Any:
    v, a, b = call.values, call.read(0), call.read(1)
    if "lo" in call.modifiers:
        return v.binary("arith.muli", a, b)
    product = _product(v, a, b, signed=call.is_signed)
    bits = bits_of(call.kind)
    if "wide" in call.modifiers or bits == 64:
        return product
    return v.resized(v.shift("shrui", product, bits), bits)


def _multiply_add(call: Call) -> Any:
    product = _multiply(call)
    return call.values.add(product, call.read(2, call.values.kind(product)))


def _absolute(call: Call) -> Any:
    v, a = call.values, call.read(0)
    return v.select(v.compare("slt", a, 0), v.sub(v.constant(0, call.kind), a), a)


def _difference(call: Call) -> Any:
    v, a, b = call.values, call.read(0), call.read(1)
    less = v.compare("slt" if call.is_signed else "ult", a, b)
    return v.add(v.select(less, v.sub(b, a), v.sub(a, b)), call.read(2))


def _counted(name: str) -> Callable[[Call], Any]:
    def lower(call: Call) -> Any:
        result = call.kind if name == "brev" else "i32"
        return call.values.function(name, [call.read(0)], result)

    return lower


def _dot(call: Call) -> Any:
    v, total = call.values, call.read(2, "i32")
    parts = [v.split(call.read(k, "i32"), 4) for k in (0, 1)]
    signs = [name == "s32" for name in call.modifiers[-2:]]
    for a, b in zip(*parts, strict=True):
        wide = [v.resized(x, 32, signed=signed) for x, signed in zip((a, b), signs, strict=True)]
        total = v.add(total, v.binary("arith.muli", *wide))
    return total


# --- logic and shifts ------------------------------------------------------------------------------------


def _shifted(v: Values, name: str, a: Any, count: Any) -> Any:
    """``shli``, ``shrui`` or ``shrsi`` by an i32 without sign; by the width or more, all bits are shifted out."""
    kind = v.kind(a)
    bits = bits_of(kind)
    last = v.op("arith.minui", [count, v.constant(bits - 1, "i32")], "i32")
    moved = v.binary(f"arith.{name}", a, v.resized(last, bits))
    if name == "shrsi":
        return moved
    return v.select(v.compare("ult", count, bits), moved, 0)


def _shift(call: Call) -> Any:
    v, a = call.values, call.read(0)
    name = "shli" if call.name == "shl" else "shrsi" if call.is_signed else "shrui"
    if (count := call.literals[1]) is not None and 0 <= count < bits_of(call.kind):
        return v.shift(name, a, count)
    return _shifted(v, name, a, call.read(1, "i32"))


def _funnel(call: Call) -> Any:
    v = call.values
    count = call.read(2, "i32")
    count = v.and_(count, 31) if "wrap" in call.modifiers else v.binary("arith.minui", count, 32)
    both, count = v.join([call.read(0, "i32"), call.read(1, "i32")]), v.resized(count, 64)
    if "l" in call.modifiers:
        return v.resized(v.shift("shrui", v.binary("arith.shli", both, count), 32), 32)
    return v.resized(v.binary("arith.shrui", both, count), 32)


def _lookup(v: Values, table: int, inputs: list[Any]) -> Any:
    """The function of bits whose values for all inputs are the bits of a table; a number where it is constant.

    The first input selects the half of the table, as in ``lop3``, where its column is 0xF0.
    """
    size = 1 << len(inputs)
    if table == 0 or table == (1 << size) - 1:
        return -1 if table else 0
    first, *others = inputs
    half = size // 2
    ones, zeros = table >> half, table & ((1 << half) - 1)
    if ones == zeros:
        return _lookup(v, ones, others)
    if ones == zeros ^ ((1 << half) - 1):
        rest = _lookup(v, zeros, others)
        return v.xor(first, rest) if rest != 0 else first
    one, zero = _lookup(v, ones, others), _lookup(v, zeros, others)
    upper = 0 if isinstance(one, int) and one == 0 else first if isinstance(one, int) else v.and_(first, one)
    inverse = v.not_(first)
    lower = (
        0
        if isinstance(zero, int) and zero == 0
        else inverse
        if isinstance(zero, int)
        else v.and_(inverse, zero)
    )
    if isinstance(upper, int):
        return lower
    return upper if isinstance(lower, int) else v.or_(upper, lower)


def _lop3(call: Call) -> Any:
    table = call.literals[3]
    assert table is not None
    v = call.values
    found = _lookup(v, table & 0xFF, [call.read(k, "i32") for k in range(3)])
    return v.constant(found, "i32") if isinstance(found, int) else found


def _permute(call: Call) -> Any:
    v = call.values
    a, b = call.read(0, "i32"), call.read(1, "i32")
    places = call.literals[2]
    if places is None:
        return _permuted(v, v.join([a, b]), call.read(2, "i32"))
    total = None
    for place in range(4):
        control = places >> (4 * place) & 15
        byte = v.shift("shrui", b if control & 4 else a, 8 * (control & 3))
        if control & 8:
            byte = v.shift("shrsi", v.shift("shli", byte, 24), 31)
        moved = v.shift("shli", v.and_(byte, 0xFF), 8 * place)
        total = moved if total is None else v.or_(total, moved)
    return total


def _permuted(v: Values, both: Any, places: Any) -> Any:
    total = None
    for place in range(4):
        control = v.shift("shrui", places, 4 * place)
        amount = v.shift("shli", v.and_(control, 7), 3)
        byte = v.and_(v.resized(v.binary("arith.shrui", both, v.resized(amount, 64)), 32), 0xFF)
        sign = v.select(v.compare("ne", v.and_(byte, 0x80), 0), v.constant(0xFF, "i32"), 0)
        byte = v.select(v.compare("ne", v.and_(control, 8), 0), sign, byte)
        moved = v.shift("shli", byte, 8 * place)
        total = moved if total is None else v.or_(total, moved)
    return total


def _ones(v: Values, count: Any, kind: str) -> Any:
    """As many low bits as an i32 says; all of them from the width on."""
    return v.not_(_shifted(v, "shli", v.constant(-1, kind), count))


def _extract(call: Call) -> Any:
    v, a = call.values, call.read(0)
    start, length = (v.and_(call.read(k, "i32"), 0xFF) for k in (1, 2))
    if not call.is_signed:
        return v.and_(_shifted(v, "shrui", a, start), _ones(v, length, call.kind))
    bits = bits_of(call.kind)
    field = _shifted(v, "shrsi", a, start)
    above = v.sub(v.constant(bits, "i32"), v.binary("arith.minui", length, bits))
    field = _shifted(v, "shrsi", _shifted(v, "shli", field, above), above)
    return v.select(v.compare("eq", length, 0), v.constant(0, call.kind), field)


def _insert(call: Call) -> Any:
    v, a, b = call.values, call.read(0), call.read(1)
    start, length = (v.and_(call.read(k, "i32"), 0xFF) for k in (2, 3))
    mask = _shifted(v, "shli", _ones(v, length, call.kind), start)
    return v.or_(v.and_(b, v.not_(mask)), v.and_(_shifted(v, "shli", a, start), mask))


# --- comparison, selection, moves ------------------------------------------------------------------------

_ORDERS = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_OF_FLOATS = {
    **{name: f"o{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}u": f"u{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "num": "ord",
    "nan": "uno",
}
_TYPES = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


def _compare(call: Call) -> Any:
    name = call.modifiers[0]
    if call.kind.startswith("i"):
        sign = "s" if call.is_signed else "u"
        predicate = name if name in ("eq", "ne") else _ORDERS.get(name) or sign + name
        return call.values.compare(predicate, call.read(0), call.read(1))
    a, b = (flushed(call, call.read(k)) for k in (0, 1))
    return call.values.compare(_OF_FLOATS[name], a, b)


def _select(call: Call) -> Any:
    return call.values.select(call.read(2, "i1"), call.read(0), call.read(1))


def _move(call: Call) -> Any:
    if len(call.widths) > 1:
        return call.values.split(call.read(0), len(call.widths))
    return call.read(0)


def _rows() -> tuple[Instruction, ...]:
    def row(
        forms: str, sources: int, lower: Callable[[Call], Any], meaning: str, section: str
    ) -> Instruction:
        return Instruction(tuple(forms.split()), sources, meaning, section, lower)

    signed, counted = "[.s16|.s32|.s64]", "[.b32|.b64]"
    return (
        row(f"add{INTEGERS}", 2, _binary("arith.addi"), "a + b, modulo 2ⁿ", ARITHMETIC),
        row("add.sat.s32", 2, _saturated("arith.addi"), "a + b, clamped to the range of the type", ARITHMETIC),
        row(f"sub{INTEGERS}", 2, _binary("arith.subi"), "a - b, modulo 2ⁿ", ARITHMETIC),
        row("sub.sat.s32", 2, _saturated("arith.subi"), "a - b, clamped to the range of the type", ARITHMETIC),
        row(f"mul[.lo|.hi]{INTEGERS} mul.wide[.u16|.u32|.s16|.s32]", 2, _multiply,
            "the low half, the high half, or all of a · b", ARITHMETIC),
        row(f"mad[.lo|.hi]{INTEGERS} mad.wide[.u16|.u32|.s16|.s32]", 3, _multiply_add, "`mul`, plus c", ARITHMETIC),
        row(f"sad{INTEGERS}", 3, _difference, "|a - b| + c", ARITHMETIC),
        row(f"abs{signed}", 1, _absolute, "|a|", ARITHMETIC),
        row(f"neg{signed}", 1, lambda call: call.values.sub(call.values.constant(0, call.kind), call.read(0)),
            "-a", ARITHMETIC),
        row(f"min{INTEGERS}", 2, _by_sign("arith.min"), "the smaller of a and b", ARITHMETIC),
        row(f"max{INTEGERS}", 2, _by_sign("arith.max"), "the larger of a and b", ARITHMETIC),
        row(f"popc{counted}", 1, _counted("popc"), "the number of bits that are set", ARITHMETIC),
        row(f"clz{counted}", 1, _counted("clz"), "the number of leading zeros", ARITHMETIC),
        row(f"brev{counted}", 1, _counted("brev"), "the bits in reverse order", ARITHMETIC),
        row("bfe[.u32|.u64|.s32|.s64]", 3, _extract, "c bits of a from bit b on, extended by zeros or by their sign",
            ARITHMETIC),
        row("bfi[.b32|.b64]", 4, _insert, "b, with d bits from bit c on replaced by those of a", ARITHMETIC),
        row("dp4a[.u32|.s32][.u32|.s32]", 3, _dot, "c plus the products of the four bytes of a and b", ARITHMETIC),
        row("and[.pred|.b16|.b32|.b64]", 2, _binary("arith.andi"), "a and b, bit by bit", LOGIC),
        row("or[.pred|.b16|.b32|.b64]", 2, _binary("arith.ori"), "a or b, bit by bit", LOGIC),
        row("xor[.pred|.b16|.b32|.b64]", 2, _binary("arith.xori"), "a exclusive-or b, bit by bit", LOGIC),
        row("not[.pred|.b16|.b32|.b64]", 1, lambda call: call.values.not_(call.read(0)), "the complement of a", LOGIC),
        row("lop3.b32", 4, _lop3, "the function of the bits of a, b and c whose table is d, a literal", LOGIC),
        row("shl[.b16|.b32|.b64]", 2, _shift, "a shifted left by b; 0 from the width on", LOGIC),
        row("shr[.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64]", 2, _shift,
            "a shifted right by b; 0, or the sign of a signed type, from the width on", LOGIC),
        row("shf[.l|.r][.clamp|.wrap].b32", 3, _funnel, "32 bits of b:a shifted by c", LOGIC),
        row("prmt.b32", 3, _permute,
            "four bytes of b:a, selected by the four low digits of c; from 8 on, the byte's sign in all bits",
            MOVEMENT),
        row("setp[.eq|.ne]{.ftz}[.b16|.b32|.b64] setp[.eq|.ne|.lt|.le|.gt|.ge]"
            f"{INTEGERS} setp[.lo|.ls|.hi|.hs][.u16|.u32|.u64]", 2, _compare, "whether a and b compare so", COMPARISON),
        row(f"setp[{'|'.join(f'.{name}' for name in _OF_FLOATS)}]{{.ftz}}[.f16|.bf16|.f32|.f64]", 2, _compare,
            "the same for floats; a name that ends in u is also true for NaN", COMPARISON),
        row(f"selp[{'|'.join(f'.{name}' for name in _TYPES)}]", 3, _select,
            "a if the predicate c is set, else b", COMPARISON),
        row(f"mov[.pred|{'|'.join(f'.{name}' for name in _TYPES)}]", 1, _move,
            "a; `{a, b}` packs registers into one, the first lowest, or unpacks one", MOVEMENT),
        Instruction(("griddepcontrol[.launch_dependents|.wait]",), 0, "nothing: kernels of a stream run in order",
                    "Parallel Synchronization and Communication Instructions", None),
    )  # fmt: skip


ROWS = _rows()

"""The texts of the support functions: one for all languages, and others where OpenCL C has its own way.

In a text, ``$T`` is the name of a type, ``$T_lane`` that of its lanes, ``$T_lanes`` their number, ``$T_mask`` the type
of a comparison and ``$T_truths`` that of as many booleans. ``@T.x[i]`` is lane i of the variable x of type T. ``$ptr``
is the type of pointers and ``$global`` their address space.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Snippet:
    """A function's text, the names of its types, and the functions that it calls, each with the types to call it for.

    `calls` maps a name in the text to a function and the types to call it for: ``load V_scalar``; one with a memory
    order of its own is ``atomic_load:relaxed B``. `by_lane` are its arguments, as ``x:T``, if it is applied to vectors
    lane by lane. `in_memory` says whether it takes a pointer, `has_order` whether there is one for each memory order.
    """

    text: str
    types: str = "T"
    calls: dict[str, str] = field(default_factory=dict)
    by_lane: str = ""
    in_memory: bool = False
    has_order: bool = False


FLOAT_FUNCTIONS = {
    "fused_multiply_add": ("a b c", "fma", "fma"),
    "square_root": ("x", "sqrt", "sqrt"),
    "round_even": ("x", "rint", "rint"),  # in the rounding mode that programs start with
    "round_away": ("x", "round", "round"),
    "round_down": ("x", "floor", "floor"),
    "round_up": ("x", "ceil", "ceil"),
    "round_to_zero": ("x", "trunc", "trunc"),
    "magnitude": ("x", "fabs", "fabs"),
    "copy_sign": ("x sign", "copysign", "copysign"),
    "remainder_of": ("a b", "fmod", "fmod"),
}
"""Functions of floats: their arguments, GCC's builtin for float64, and OpenCL C's function."""


def _extremum(nan: str, smaller: bool) -> Snippet:
    """A minimum or maximum in which -0 is less than 0."""
    zeros = "$signbit(a) ? a : b" if smaller else "$signbit(a) ? b : a"
    order = "<" if smaller else ">"
    return Snippet(
        f"$inline $T $name($T a, $T b) {{ {nan} if (a == b) return {zeros}; return a {order} b ? a : b; }}",
        by_lane="a:T b:T",
    )


_EITHER_NAN = "if (a != a) return a; if (b != b) return b;"
_OTHER_NAN = "if (a != a) return b; if (b != b) return a;"


def _bits(body: str) -> Snippet:
    """A function of the bits of an unsigned integer."""
    return Snippet(f"$inline $T $name($T x) {{\n{body}\n}}", by_lane="x:T")


def _saturated(kind: str, low: str, high: str) -> Snippet:
    """Toward zero, the nearest integer of the type where it has none; 0 for NaN."""
    return Snippet(
        "$inline $T $name($F x) {\n"
        f"  if (x != x) return 0;\n  if (x <= ($F)({low})) return ($T)({low});\n"
        f"  if (x >= ($F)({high})) return ($T)({high});\n  return ($T)({kind})x;\n}}",
        "TF",
        by_lane="x:F",
    )


def _reduction(body: str) -> Snippet:
    return Snippet(f"$inline $V_lane $name($V vector) {{\n{body}\n}}", "V")


def _lanes_of(result: str, arguments: str, lane: str, types: str) -> Snippet:
    """A vector whose lane i is a given one."""
    return Snippet(
        f"$inline ${result} $name({arguments}) {{\n  ${result} result = ${result}_zero;\n"
        f"  for (int i = 0; i < ${result}_lanes; ++i)\n    @{result}.result[i] = {lane};\n  return result;\n}}",
        types,
    )


def _masked(result: str, arguments: str, statement: str, called: str, types: str = "VM") -> Snippet:
    """An access of the lanes that a mask has set; the others touch no memory."""
    returned = "\n  return other;" if result != "void" else ""
    return Snippet(
        f"$inline {result} $name({arguments}) {{\n  for (int i = 0; i < $V_lanes; ++i)\n"
        f"    if (@M.mask[i])\n      {statement};{returned}\n}}",
        types,
        {called: f"{called} V_scalar"},
        in_memory=True,
    )


_AT_LANE = "place + i * (int)sizeof($V_lane)"
_AT_PLACE = "($ptr)(uintptr_t)@P.places[i]"


def _atomic(body: str, result: str = "$T", arguments: str = "$ptr place, $T value") -> Snippet:
    """An atomic operation on an integer."""
    return Snippet(f"$inline {result} $name({arguments}) {{ {body} }}", in_memory=True, has_order=True)


def _opencl_atomic(name: str) -> Snippet:
    """OpenCL 1.2's functions are in later releases too. They order nothing, so fences stand around them."""
    return _atomic(
        f"$before const $T old = ${{atomic}}{name}((volatile $global $T *)place, value); $after return old;"
    )


_FETCHES = {
    "exchange": ("exchange_n", "xchg"), "fetch_add": ("fetch_add", "add"), "fetch_sub": ("fetch_sub", "sub"),
    "fetch_and": ("fetch_and", "and"), "fetch_or": ("fetch_or", "or"), "fetch_xor": ("fetch_xor", "xor"),
}  # fmt: skip
"""Atomic operations: GCC's names and OpenCL C's."""

SNIPPETS: dict[str, Snippet] = {
    "as": Snippet(
        "$inline $T $name($S source) {\n"
        "  $T result;\n  __builtin_memcpy(&result, &source, sizeof result);\n  return result;\n}",
        "TS",
    ),
    "splat": _lanes_of("V", "$V_lane value", "value", "V"),
    "choose": Snippet("$inline $V $name($V_mask mask, $V a, $V b) { return $choice; }", "V"),
    "select": Snippet(
        "$inline $V $name($V_truths mask, $V a, $V b) { return $choose($V_as_mask, a, b); }",
        "V",
        {"choose": "choose V"},
    ),
    "at": Snippet(
        "$inline $T $name($T base, u64 bytes) { return ($T)((uintptr_t)base + (uintptr_t)bytes); }"
    ),
    "load": Snippet(
        "$inline $T $name($ptr place) {\n"
        "  $T value;\n  __builtin_memcpy(&value, place, sizeof value);\n  return value;\n}",
        in_memory=True,
    ),
    "store": Snippet(
        "$inline void $name($ptr place, $T value) {\n  __builtin_memcpy(place, &value, sizeof value);\n}",
        in_memory=True,
    ),
    "load_masked": _masked(
        "$V", "$ptr place, $M mask, $V other", f"@V.other[i] = $load({_AT_LANE})", "load"
    ),
    "store_masked": _masked(
        "void", "$ptr place, $V value, $M mask", f"$store({_AT_LANE}, @V.value[i])", "store"
    ),
    "gather": _masked(
        "$V", "$P places, $M mask, $V other", f"@V.other[i] = $load({_AT_PLACE})", "load", "VMP"
    ),
    "scatter": _masked(
        "void", "$V value, $P places, $M mask", f"$store({_AT_PLACE}, @V.value[i])", "store", "VMP"
    ),
    "slice": _lanes_of("R", "$V vector, int first", "@V.vector[first + i]", "RV"),
    "interleave": _lanes_of("R", "$V a, $V b", "i % 2 ? @V.b[i / 2] : @V.a[i / 2]", "RV"),
    "all": Snippet(
        "$inline bool $name($M mask) {\n  bool result = true;\n"
        "  for (int i = 0; i < $M_lanes; ++i)\n    result &= @M.mask[i] != 0;\n  return result;\n}",
        "M",
    ),
    "any": Snippet(
        "$inline bool $name($M mask) {\n  bool result = false;\n"
        "  for (int i = 0; i < $M_lanes; ++i)\n    result |= @M.mask[i] != 0;\n  return result;\n}",
        "M",
    ),
    "reduce_in_order": _reduction(
        "  $V_lane a = @V.vector[0];\n  for (int i = 1; i < $V_lanes; ++i) {\n"
        "    const $V_lane b = @V.vector[i];\n    a = $body;\n  }\n  return a;"
    ),
    "reduce_pairs": _reduction(
        "  // In any order: the halves with each other, until one lane is left.\n"
        "  for (int width = $V_lanes / 2; width; width /= 2)\n    for (int i = 0; i < width; ++i) {\n"
        "      const $V_lane a = @V.vector[i], b = @V.vector[i + width];\n      @V.vector[i] = $body;\n    }\n"
        "  return @V.vector[0];"
    ),
    "minimum": _extremum(_EITHER_NAN, smaller=True),
    "maximum": _extremum(_EITHER_NAN, smaller=False),
    "minimum_number": _extremum(_OTHER_NAN, smaller=True),
    "maximum_number": _extremum(_OTHER_NAN, smaller=False),
    "leading_zeros": _bits(
        "  $T count = 0;\n  for ($T bit = ($T)(($T)1 << ($T_bits - 1)); bit && !(x & bit); bit = ($T)(bit >> 1))\n"
        "    ++count;\n  return count;"
    ),
    "trailing_zeros": _bits(
        "  $T count = 0;\n  for ($T bit = 1; bit && !(x & bit); bit = ($T)(bit << 1))\n    ++count;\n  return count;"
    ),
    "bit_count": _bits("  $T count = 0;\n  for (; x; x = ($T)(x & (x - 1)))\n    ++count;\n  return count;"),
    "reversed_bits": _bits(
        "  $T result = 0;\n  for (int i = 0; i < $T_bits; ++i)\n"
        "    result = ($T)(result << 1 | (x >> i & 1));\n  return result;"
    ),
    "saturated_signed": _saturated("$signed", "($signed)(-$signed_high - 1)", "($signed)$signed_high"),
    "saturated_unsigned": _saturated("$T", "($T)0", "($T)$high"),
    "scaled_by_power": Snippet(
        "$inline $T $name($T x, $E exponent) { return __builtin_ldexp$T_f(x, (i32)exponent); }",
        "TE",
        by_lane="x:T exponent:E",
    ),
    "atomic_load": _atomic("return __atomic_load_n(($T *)place, __ATOMIC_$ORDER);", arguments="$ptr place"),
    "atomic_store": _atomic("__atomic_store_n(($T *)place, value, __ATOMIC_$ORDER);", "void"),
    **{
        f"atomic_{name}": _atomic(f"return __atomic_{builtin}(($T *)place, value, __ATOMIC_$ORDER);")
        for name, (builtin, _) in _FETCHES.items()
    },
    "atomic_swap_if": Snippet(
        "// Stores `desired` where `expected` is found; what was found.\n"
        "$inline $T $name($ptr place, $T expected, $T desired) {\n"
        "  __atomic_compare_exchange_n(($T *)place, &expected, desired, false, __ATOMIC_$ORDER, __ATOMIC_$FAILURE);\n"
        "  return expected;\n}",
        in_memory=True,
        has_order=True,
    ),
    "atomic_update": Snippet(
        "// Replaces what is at `place` by a function of it and of `value`; what was there.\n"
        "$inline $T $name($ptr place, $T value) {\n  for ($B seen = $peek(place);;) {\n"
        "    const $T old = $from_bits(seen);\n"
        "    const $B found = $swap(place, seen, $to_bits($body));\n"
        "    if (found == seen) return old;\n    seen = found;\n  }\n}",
        "TB",
        {
            "peek": "atomic_load:relaxed B", "from_bits": "as T B", "to_bits": "as B T", "swap": "atomic_swap_if B",
        },
        in_memory=True,
        has_order=True,
    ),
}  # fmt: skip
"""By name, in C and C++ and, where `OPENCL_SNIPPETS` has no other, in OpenCL C."""

_SWAP_NARROW = """\
$inline $T $name($ptr place, $T expected, $T desired) {
  const uintptr_t address = (uintptr_t)place;
  volatile $global u32 *const word = (volatile $global u32 *)(address & ~(uintptr_t)3);
  const u32 low = (u32)(address & 3) * 8, ones = (u32)$high << low;
  $before for (u32 old = *word;;) {
    const $T found = ($T)(old >> low);
    if (found != expected) return found;
    const u32 seen = atomic_cmpxchg(word, old, (old & ~ones) | (u32)desired << low);
    if (seen == old) { $after return expected; }
    old = seen;
  }
}"""
"""Of fewer than 32 bits, by the 32 bits around them; the lowest byte is the first in memory."""

OPENCL_SNIPPETS: dict[str, Snippet] = {
    "as": Snippet("$inline $T $name($S source) { return as_$T_own(source); }", "TS"),
    "splat": Snippet("$inline $V $name($V_lane value) { return ($V)(value); }", "V"),
    "at": Snippet("$inline $T $name($T base, u64 bytes) { return base + (i64)bytes; }"),
    "load": Snippet("$inline $T $name($ptr place) { return $T_read; }", in_memory=True),
    "store": Snippet("$inline void $name($ptr place, $T value) { $T_write; }", in_memory=True),
    "scaled_by_power": Snippet(
        "$inline $T $name($T x, $E exponent) { return ldexp(x, (i32)exponent); }", "TE", by_lane="x:T exponent:E"
    ),
    "fence": Snippet(
        "#if defined(__opencl_c_atomic_scope_device) || (__OPENCL_C_VERSION__ >= 200 && __OPENCL_C_VERSION__ < 300)\n"
        "$inline void $name(void) {\n"
        "  atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);\n}\n"
        "#else\n$inline void $name(void) { mem_fence(CLK_GLOBAL_MEM_FENCE); }\n#endif",
        "",
    ),
    "atomic_load": _atomic(
        "$before const $T value = *(volatile $global $T *)place; $after return value;", arguments="$ptr place"
    ),
    "atomic_store": _atomic("$before *(volatile $global $T *)place = value; $after", "void"),
    **{f"atomic_{name}": _opencl_atomic(own) for name, (_, own) in _FETCHES.items()},
    "atomic_swap_if": Snippet(
        "$inline $T $name($ptr place, $T expected, $T desired) {\n"
        "  $before const $T found = ${atomic}cmpxchg((volatile $global $T *)place, expected, desired);\n"
        "  $after return found;\n}",
        in_memory=True,
        has_order=True,
    ),
    "atomic_swap_narrow_if": Snippet(_SWAP_NARROW, in_memory=True, has_order=True),
    "atomic_update_narrow": replace(
        SNIPPETS["atomic_update"],
        calls=SNIPPETS["atomic_update"].calls | {"swap": "atomic_swap_narrow_if B"},
    ),
}  # fmt: skip

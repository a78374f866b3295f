"""The small inline functions that emitted C++ calls. Each text contains only those that it uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NAMESPACE = "tpk_support"

PREAMBLE = """\
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
typedef char *ptr;
"""

RARE_TYPES = {
    "f16": "typedef _Float16 f16;",
    "u128": "typedef unsigned __int128 u128;\ntypedef __int128 i128;",
}
"""Scalar types that not every compiler has, by name."""


@dataclass(frozen=True)
class Snippet:
    """Lines of C++, and the names of the snippets that they use."""

    text: str
    uses: tuple[str, ...] = ()


def _overloaded(name: str, arguments: str, body: str) -> Snippet:
    """A function of floats and of vectors of them. ``{f}`` in `body` is the type's letter in a builtin's name."""
    names = arguments.split()
    lines = []
    for type, letter in (("f32", "f"), ("f64", "")):
        parameters = ", ".join(f"{type} {argument}" for argument in names)
        lines.append(f"inline {type} {name}({parameters}) {{ {body.replace('{f}', letter)} }}")
    parameters = ", ".join(f"const V &{argument}" for argument in names)
    lanes = ", ".join(f"{argument}[i]" for argument in names)
    lines.append(
        f"template <class V> inline V {name}({parameters}) {{\n"
        "  V result{};\n"
        f"  for (int i = 0; i < lanes<V>; ++i)\n    result[i] = {name}({lanes});\n"
        "  return result;\n}"
    )
    return Snippet("\n".join(lines), ("lanes",))


def _bits_function(name: str, body: str) -> Snippet:
    """A function of the bits of an unsigned integer of any width."""
    return Snippet(f"template <class T> inline T {name}(T x) {{\n{body}\n}}")


def _extremum(name: str, nan: str, smaller: bool) -> Snippet:
    """A minimum or maximum in which -0 is less than 0."""
    zeros = "__builtin_signbit(a) ? a : b" if smaller else "__builtin_signbit(a) ? b : a"
    return _overloaded(
        name, "a b", f"{nan} if (a == b) return {zeros}; return a {'<' if smaller else '>'} b ? a : b;"
    )


_EITHER_NAN = "if (a != a) return a; if (b != b) return b;"
_OTHER_NAN = "if (a != a) return b; if (b != b) return a;"

SNIPPETS: dict[str, Snippet] = {
    "lanes": Snippet(
        "template <class T> struct bare { typedef T type; };\n"
        "template <class T> struct bare<const T> { typedef T type; };\n"
        "template <class T> struct bare<T &> : bare<T> {};\n"
        "template <class T> struct bare<T &&> : bare<T> {};\n"
        "template <class V> using element = typename bare<decltype(V{}[0])>::type;\n"
        "template <class V> constexpr int lanes = int(sizeof(V) / sizeof(element<V>));"
    ),
    "as": Snippet(
        "// The same bits as another type.\n"
        "template <class T, class S> inline T as(const S &source) {\n"
        '  static_assert(sizeof(T) == sizeof(S), "types of one size");\n'
        "  T result;\n  __builtin_memcpy(&result, &source, sizeof result);\n  return result;\n}"
    ),
    "splat": Snippet(
        "template <class V> inline V splat(element<V> value) {\n"
        "  V result{};\n  for (int i = 0; i < lanes<V>; ++i)\n    result[i] = value;\n  return result;\n}",
        ("lanes",),
    ),
    "select": Snippet(
        "template <class M, class V> inline V select(const M &mask, const V &a, const V &b) {\n"
        "  return __builtin_convertvector(mask, decltype(a == b)) ? a : b;\n}"
    ),
    "each": Snippet(
        "template <class R, class F, class... V> inline R each(F function, const V &...values) {\n"
        "  R result{};\n  for (int i = 0; i < lanes<R>; ++i)\n    result[i] = function(values[i]...);\n"
        "  return result;\n}",
        ("lanes",),
    ),
    "at": Snippet(
        "inline ptr at(ptr base, u64 bytes) { return ptr(uintptr_t(base) + uintptr_t(bytes)); }"
    ),
    "load": Snippet(
        "template <class T> inline T load(ptr place) {\n"
        "  T value;\n  __builtin_memcpy(&value, place, sizeof value);\n  return value;\n}"
    ),
    "store": Snippet(
        "template <class T> inline void store(ptr place, const T &value) {\n"
        "  __builtin_memcpy(place, &value, sizeof value);\n}"
    ),
    "load_masked": Snippet(
        "// Lanes that the mask leaves out touch no memory and keep what `other` has.\n"
        "template <class V, class M> inline V load_masked(ptr place, const M &mask, V other) {\n"
        "  for (int i = 0; i < lanes<V>; ++i)\n    if (mask[i])\n"
        "      other[i] = load<element<V>>(place + i * sizeof(element<V>));\n  return other;\n}",
        ("lanes", "load"),
    ),
    "store_masked": Snippet(
        "template <class V, class M> inline void store_masked(ptr place, const V &value, const M &mask) {\n"
        "  for (int i = 0; i < lanes<V>; ++i)\n    if (mask[i])\n"
        "      store<element<V>>(place + i * sizeof(element<V>), value[i]);\n}",
        ("lanes", "store"),
    ),
    "gather": Snippet(
        "template <class V, class P, class M> inline V gather(const P &places, const M &mask, V other) {\n"
        "  for (int i = 0; i < lanes<V>; ++i)\n    if (mask[i])\n"
        "      other[i] = load<element<V>>(ptr(uintptr_t(places[i])));\n  return other;\n}",
        ("lanes", "load"),
    ),
    "scatter": Snippet(
        "template <class V, class P, class M> inline void scatter(const V &value, const P &places, const M &mask) {\n"
        "  for (int i = 0; i < lanes<V>; ++i)\n    if (mask[i])\n"
        "      store<element<V>>(ptr(uintptr_t(places[i])), value[i]);\n}",
        ("lanes", "store"),
    ),
    "slice": Snippet(
        "template <class R, class V> inline R slice(const V &vector, int first) {\n"
        "  R result{};\n  for (int i = 0; i < lanes<R>; ++i)\n    result[i] = vector[first + i];\n  return result;\n}",
        ("lanes",),
    ),
    "interleave": Snippet(
        "template <class R, class V> inline R interleave(const V &a, const V &b) {\n"
        "  R result{};\n  for (int i = 0; i < lanes<R>; ++i)\n    result[i] = i % 2 ? b[i / 2] : a[i / 2];\n"
        "  return result;\n}",
        ("lanes",),
    ),
    "all": Snippet(
        "template <class M> inline bool all(const M &mask) {\n  bool result = true;\n"
        "  for (int i = 0; i < lanes<M>; ++i)\n    result &= mask[i] != 0;\n  return result;\n}",
        ("lanes",),
    ),
    "any": Snippet(
        "template <class M> inline bool any(const M &mask) {\n  bool result = false;\n"
        "  for (int i = 0; i < lanes<M>; ++i)\n    result |= mask[i] != 0;\n  return result;\n}",
        ("lanes",),
    ),
    "reduce": Snippet(
        "// From the first lane to the last.\n"
        "template <class F, class V> inline element<V> reduce(F function, const V &vector) {\n"
        "  element<V> result = vector[0];\n  for (int i = 1; i < lanes<V>; ++i)\n"
        "    result = function(result, vector[i]);\n  return result;\n}",
        ("lanes",),
    ),
    "reduce_pairs": Snippet(
        "// In any order: the halves with each other, until one lane is left.\n"
        "template <class F, class V> inline element<V> reduce_pairs(F function, V vector) {\n"
        "  for (int half = lanes<V> / 2; half; half /= 2)\n    for (int i = 0; i < half; ++i)\n"
        "      vector[i] = function(vector[i], vector[i + half]);\n  return vector[0];\n}",
        ("lanes",),
    ),
    "fused_multiply_add": _overloaded("fused_multiply_add", "a b c", "return __builtin_fma{f}(a, b, c);"),
    "square_root": _overloaded("square_root", "x", "return __builtin_sqrt{f}(x);"),
    "round_even": _overloaded(
        "round_even", "x", "return __builtin_rint{f}(x); /* in the rounding mode that programs start with */"
    ),
    "round_away": _overloaded("round_away", "x", "return __builtin_round{f}(x);"),
    "round_down": _overloaded("round_down", "x", "return __builtin_floor{f}(x);"),
    "round_up": _overloaded("round_up", "x", "return __builtin_ceil{f}(x);"),
    "round_to_zero": _overloaded("round_to_zero", "x", "return __builtin_trunc{f}(x);"),
    "magnitude": _overloaded("magnitude", "x", "return __builtin_fabs{f}(x);"),
    "copy_sign": _overloaded("copy_sign", "x sign", "return __builtin_copysign{f}(x, sign);"),
    "remainder_of": _overloaded("remainder_of", "a b", "return __builtin_fmod{f}(a, b);"),
    "minimum": _extremum("minimum", _EITHER_NAN, smaller=True),
    "maximum": _extremum("maximum", _EITHER_NAN, smaller=False),
    "minimum_number": _extremum("minimum_number", _OTHER_NAN, smaller=True),
    "maximum_number": _extremum("maximum_number", _OTHER_NAN, smaller=False),
    "leading_zeros": _bits_function(
        "leading_zeros",
        "  T count = 0;\n  for (T bit = T(T(1) << (8 * sizeof(T) - 1)); bit && !(x & bit); bit = T(bit >> 1))\n"
        "    ++count;\n  return count;",
    ),
    "trailing_zeros": _bits_function(
        "trailing_zeros",
        "  T count = 0;\n  for (T bit = 1; bit && !(x & bit); bit = T(bit << 1))\n    ++count;\n  return count;",
    ),
    "bit_count": _bits_function(
        "bit_count", "  T count = 0;\n  for (; x; x = T(x & (x - 1)))\n    ++count;\n  return count;"
    ),
    "reversed_bits": _bits_function(
        "reversed_bits",
        "  T result = 0;\n  for (unsigned i = 0; i < 8 * sizeof(T); ++i)\n"
        "    result = T(result << 1 | (x >> i & 1));\n  return result;",
    ),
    "saturated": Snippet(
        "// Toward zero, the nearest integer of the type where it has none; 0 for NaN.\n"
        "template <class I, class F> inline I saturated(F x) {\n"
        "  constexpr bool has_sign = I(-1) < I(0);\n"
        "  constexpr I high = I(~u64(0) >> has_sign >> (64 - 8 * sizeof(I))), low = has_sign ? I(-high - 1) : I(0);\n"
        "  if (x != x) return 0;\n  if (x <= F(low)) return low;\n  if (x >= F(high)) return high;\n"
        "  return I(x);\n}"
    ),
    "atomic_update": Snippet(
        "// Replaces what is at `place`, of bits B, by a function of it; what was there.\n"
        "template <class T, class B, class F> inline T atomic_update(ptr place, F function, int order) {\n"
        "  B old = __atomic_load_n((B *)place, __ATOMIC_RELAXED);\n"
        "  while (!__atomic_compare_exchange_n((B *)place, &old, as<B>(T(function(as<T>(old)))), false, order,\n"
        "                                      __ATOMIC_RELAXED)) {\n  }\n  return as<T>(old);\n}",
        ("as",),
    ),
}  # fmt: skip


def text(names: Iterable[str]) -> list[str]:
    """The definitions of snippets and of all that they use, each before its first use."""
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in ordered:
            return
        for needed in SNIPPETS[name].uses:
            add(needed)
        ordered.append(name)

    for name in sorted(names):
        add(name)
    return [SNIPPETS[name].text for name in ordered]

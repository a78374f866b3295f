"""The functions of ``triton.language.extra.libdevice``: overloads, meaning and accuracy.

The module that kernels import, the importer and the documentation are made from this table. The functions are those of
Triton's interface, in its order of themes. The symbols are those of CUDA's and AMD's device libraries, so that kernels
that import those modules work as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Overload:
    """Operand and result types by Triton's names, and the symbol in CUDA's libdevice, without ``__nv_``."""

    operands: tuple[str, ...]
    result: str
    symbol: str


@dataclass(frozen=True)
class Function:
    """A function of the interface.

    `meaning` is the operation of the structured form that it becomes: an upstream one, or the `name` of
    ``tpk.function``. `ulp` bounds its error in units in the last place, for float32 and float64; 0 means exact or
    correctly rounded. `predicate`: kernels see an i1 instead of the 32-bit result.
    """

    name: str
    theme: str
    overloads: tuple[Overload, ...]
    meaning: str
    ulp: tuple[float, float] = (0.0, 0.0)
    note: str = ""
    predicate: bool = False

    @property
    def in_upstream(self) -> bool:
        """Whether `meaning` is an operation of an upstream dialect."""
        return "." in self.meaning


_INTEGERS = ("int32", "int64", "uint32", "uint64")


def _overload(signature: str) -> Overload:
    """``symbol(fp32,int32)fp32`` with the types abbreviated: f, d, i, l, u, m for fp32 to uint64."""
    names = dict(zip("fdilum", ("fp32", "fp64", *_INTEGERS), strict=True))
    symbol, _, rest = signature.partition("(")
    operands, _, result = rest.partition(")")
    return Overload(tuple(names[letter] for letter in operands), names[result], symbol)


def _rows() -> Iterator[Function]:
    yield from _bits()
    yield from _rounding()
    yield from _directed()
    yield from _conversions()
    yield from _classification()
    yield from _elementary()
    yield from _special()
    yield from _fast()


def _row(name: str, theme: str, signatures: str, meaning: str = "", **more: object) -> Function:
    return Function(
        name,
        theme,
        tuple(map(_overload, signatures.split())),
        meaning or name,
        **more,  # type: ignore[arg-type]
    )


def _real(name: str, theme: str, operands: int = 1, meaning: str = "", **more: object) -> Function:
    """A function of floats whose symbol for single precision ends in f."""
    signatures = f"{name}f({'f' * operands})f {name}({'d' * operands})d"
    return _row(name, theme, signatures, meaning, **more)


def _bits() -> Iterator[Function]:
    theme = "integers and bits"
    yield _row("clz", theme, "clz(i)i clzll(l)i", note="the width for 0")
    yield _row("popc", theme, "popc(i)i popcll(l)i")
    yield _row("ffs", theme, "ffs(i)i ffsll(l)i", note="counted from 1; 0 for 0")
    yield _row("brev", theme, "brev(i)i brevll(l)l")
    yield _row("byte_perm", theme, "byte_perm(iii)i", note="bit 3 of a selector is ignored")
    yield _row("mulhi", theme, "mulhi(ii)i umulhi(uu)u mul64hi(ll)l umul64hi(mm)m")
    yield _row("mul24", theme, "mul24(ii)i umul24(uu)u", note="of the low 24 bits")
    yield _row("sad", theme, "sad(iiu)i usad(uuu)u")
    yield _row("hadd", theme, "hadd(ii)i uhadd(uu)u", note="toward negative infinity")
    yield _row("rhadd", theme, "rhadd(ii)i urhadd(uu)u", note="toward positive infinity")
    yield _row("abs", theme, "abs(i)i llabs(l)l fabsf(f)f fabs(d)d")


def _rounding() -> Iterator[Function]:
    theme = "rounding and parts of floats"
    for name in ("floor", "ceil", "trunc", "round"):
        yield _real(
            name, theme, meaning=f"math.{name}", note="halves away from zero" if name == "round" else ""
        )
    for name in ("rint", "nearbyint"):
        yield _real(name, theme, meaning="math.roundeven", note="halves to even")
    yield _row("llrint", theme, "llrintf(f)l llrint(d)l", note="as `float2ll_rn`, `double2ll_rn`")
    yield _row("llround", theme, "llroundf(f)l llround(d)l", note="halves away from zero")
    yield _real("copysign", theme, 2, "math.copysign")
    yield _real("nextafter", theme, 2)
    yield _row("ldexp", theme, "ldexpf(fi)f ldexp(di)d")
    yield _row("scalbn", theme, "scalbnf(fi)f scalbn(di)d", "ldexp")
    yield _row(
        "ilogb", theme, "ilogbf(f)i ilogb(d)i", note="lowest int32 for 0 and NaN, highest for infinity"
    )
    yield _real("logb", theme)
    yield _row("saturatef", theme, "saturatef(f)f", note="NaN becomes 0")


_MODES = ("rn", "rz", "rd", "ru")


def _directed() -> Iterator[Function]:
    """Arithmetic rounded to nearest even, toward zero, down and up."""
    theme = "arithmetic with a rounding mode"
    for name, operands in (
        ("add", 2),
        ("sub", 2),
        ("mul", 2),
        ("div", 2),
        ("rcp", 1),
        ("sqrt", 1),
        ("fma", 3),
    ):
        for mode in _MODES:
            single, double = f"f{name}_{mode}", f"d{name}_{mode}"
            if name == "fma":
                single, double = f"fmaf_{mode}", f"fma_{mode}"
            meaning = {"div_rn": "arith.divf", "sqrt_rn": "math.sqrt", "fma_rn": "math.fma"}.get(
                f"{name}_{mode}", ""
            )
            signatures = f"{single}({'f' * operands})f {double}({'d' * operands})d"
            note = (
                "never fused with other operations" if mode == "rn" and name in ("add", "sub", "mul") else ""
            )
            yield _row(f"{name}_{mode}", theme, signatures, meaning, note=note)
    yield _real("fma", theme, 3, "math.fma")
    yield _real("sqrt", theme, 1, "math.sqrt")
    yield _row("rsqrt_rn", theme, "frsqrt_rn(f)f")
    note = "20 bits of the fraction of 1/x; the low word is 0"
    yield _row("rcp64h", theme, "rcp64h(d)d", note=note)


def _conversions() -> Iterator[Function]:
    theme = "conversions"
    # For NaN, the result of PTX, because C leaves it undefined.
    for source, letter in (("float", "f"), ("double", "d")):
        for target, result in (("int", "i"), ("uint", "i"), ("ll", "l"), ("ull", "l")):
            nan = "only the highest bit set"
            if source == "float" and result == "i":
                nan = "0"
            for mode in _MODES:
                name = f"{source}2{target}_{mode}"
                yield _row(name, theme, f"{name}({letter}){result}", note=f"saturates; for NaN {nan}")
    for source, letter in (("int", "i"), ("uint", "u"), ("ll", "l"), ("ull", "m")):
        cast = "arith.sitofp" if letter in "il" else "arith.uitofp"
        for mode in _MODES:
            name = f"{source}2float_{mode}"
            yield _row(name, theme, f"{name}({letter})f", cast if mode == "rn" else "")
        for mode in _MODES if letter in "lm" else ("rn",):
            name = f"{source}2double_{mode}"
            yield _row(name, theme, f"{name}({letter})d", cast if mode == "rn" else "")
    for mode in _MODES:
        name = f"double2float_{mode}"
        yield _row(name, theme, f"{name}(d)f", "arith.truncf" if mode == "rn" else "")
    for name, signature in (
        ("int_as_float", "(i)f"), ("float_as_int", "(f)i"), ("uint_as_float", "(u)f"), ("float_as_uint", "(f)i"),
        ("longlong_as_double", "(l)d"), ("double_as_longlong", "(d)l"),
    ):  # fmt: skip
        yield _row(name, theme, name + signature, "arith.bitcast", note="the bits as they are")
    yield _row("hiloint2double", theme, "hiloint2double(ii)d", note="the bits as they are")
    yield _row("double2loint", theme, "double2loint(d)i", note="the bits as they are")
    yield _row("double2hiint", theme, "double2hiint(d)i", note="the bits as they are")


def _classification() -> Iterator[Function]:
    theme = "classification"
    yield _row("isnan", theme, "isnanf(f)i isnand(d)i", predicate=True)
    yield _row("isinf", theme, "isinff(f)i isinfd(d)i", predicate=True)
    yield _row("finitef", theme, "finitef(f)i", "isfinite", predicate=True)
    yield _row("isfinited", theme, "isfinited(d)i", "isfinite", predicate=True)
    yield _row("signbit", theme, "signbitf(f)i signbitd(d)i", note="1 or 0")


def _elementary() -> Iterator[Function]:
    theme = "elementary functions"
    two = (2.0, 2.0)
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"):
        yield _real(name, theme, 1, f"math.{name}", ulp=two)
    yield _real("exp10", theme, ulp=two)
    yield _real("sinpi", theme, ulp=two)
    yield _real("cospi", theme, ulp=two)
    for name in ("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt"):
        yield _real(name, theme, 1, f"math.{name}", ulp=two)
    yield _real("atan2", theme, 2, "math.atan2", ulp=two)
    yield _real("rcbrt", theme, ulp=two)
    yield _real("rsqrt", theme, 1, "math.rsqrt", ulp=two)
    note = "the base is a float, the exponent a float or an int32"
    yield _row("pow", theme, "powif(fi)f powi(di)d powf(ff)f pow(dd)d", ulp=(4.0, 4.0), note=note)
    yield _real("fmod", theme, 2)
    yield _real("remainder", theme, 2)
    yield _real("fdim", theme, 2)
    for name, operands in (
        ("hypot", 2),
        ("rhypot", 2),
        ("norm3d", 3),
        ("rnorm3d", 3),
        ("norm4d", 4),
        ("rnorm4d", 4),
    ):
        yield _real(name, theme, operands, ulp=two)


_NEAR_ZEROS = "or 2⁻⁶⁰·√(2/πx), which counts near zeros in float64"


def _special() -> Iterator[Function]:
    theme = "special functions"
    two, four = (2.0, 2.0), (4.0, 4.0)
    yield _real("erf", theme, 1, "math.erf", ulp=two)
    yield _real("erfc", theme, 1, "math.erfc", ulp=two)
    for name in ("erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv"):
        yield _real(name, theme, ulp=two)
    yield _real("tgamma", theme, ulp=four)
    yield _real("lgamma", theme, ulp=four)
    for name in ("j0", "j1", "y0", "y1"):
        yield _real(name, theme, ulp=four, note=_NEAR_ZEROS)
    for name in ("jn", "yn"):
        yield _row(name, theme, f"{name}f(if)f {name}(id)d", ulp=four, note=_NEAR_ZEROS)
    yield _real("cyl_bessel_i0", theme, ulp=four)
    yield _real("cyl_bessel_i1", theme, ulp=four)


def _fast() -> Iterator[Function]:
    """CUDA's approximate functions; here they are the accurate ones."""
    theme = "fast functions, which are the accurate ones"
    yield _row("fast_dividef", theme, "fast_fdividef(ff)f", "arith.divf")
    for name in ("sin", "cos", "tan", "tanh", "exp", "log", "log2", "log10"):
        yield _row(f"fast_{name}f", theme, f"fast_{name}f(f)f", f"math.{name}", ulp=(2.0, 2.0))
    yield _row("fast_exp10f", theme, "fast_exp10f(f)f", "exp10", ulp=(2.0, 2.0))
    yield _row("fast_powf", theme, "fast_powf(ff)f", "pow", ulp=(4.0, 4.0))


@cache
def functions() -> dict[str, Function]:
    """The functions of the interface by name."""
    return {row.name: row for row in _rows()}


def symbol(function: Function, overload: Overload) -> str:
    """The symbol of an overload in kernels compiled for the kit, such as ``tpk.erfinv``."""
    return f"tpk.{_name(function, overload)}"


def _name(function: Function, overload: Overload) -> str:
    """The meaning of an overload.

    MLIR's integers have no sign, so unsigned overloads have another name if it matters.
    """
    both = {operand[0] for one in function.overloads for operand in one.operands[:1]}
    return (
        f"u{function.meaning}" if both == {"i", "u"} and overload.operands[0][0] == "u" else function.meaning
    )


_HIP_NAMES = {
    "pown": "pow", "i0": "cyl_bessel_i0", "i1": "cyl_bessel_i1", "popcount": "popc", "iabs": "abs", "fabs": "abs",
    "fast_fdividef": "fast_dividef", "isfinite": "finitef",
}  # fmt: skip
_HIP_FORMS = (
    "__ocml_{}_f16", "__ocml_{}_f32", "__ocml_{}_f64", "__ockl_{}_u32", "__ockl_{}_u64", "__triton_hip_{}",
)  # fmt: skip


@cache
def symbols() -> dict[str, str]:
    """The meaning of every symbol: the kit's, CUDA's (``__nv_erfinvf``), AMD's (``__ocml_erf_f32``), upstream's."""
    found: dict[str, str] = {}
    for row in functions().values():
        for overload in row.overloads:
            meaning = _name(row, overload)
            found[symbol(row, overload)] = meaning
            found[f"__nv_{overload.symbol}"] = meaning
        if row.in_upstream:
            found[row.meaning] = row.meaning
        found.update({form.format(row.name): row.meaning for form in _HIP_FORMS})
    for hip, name in _HIP_NAMES.items():
        found.update({form.format(hip): functions()[name].meaning for form in _HIP_FORMS})
    return found

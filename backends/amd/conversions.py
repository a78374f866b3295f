"""Conversions of 8-bit floats that Triton's passes cannot lower, or that make LLVM abort.

In TTIR, each is replaced by two conversions through f32, which represents every number of 8 and of 16 bits.
"""

from __future__ import annotations

import re

from triton_porting_kit.toolchain import compat

_CONVERSION = re.compile(
    r"^(?P<indent> *)(?P<result>%\w+) = tt\.fp_to_fp (?P<operand>%[\w#]+)(?P<rounding>, rounding = \w+)?"
    r" : (?P<source>\S+) -> (?P<target>\S+)(?P<place>.*)$",
    re.MULTILINE,
)
_ELEMENT = re.compile(r"(?:^|(?<=\dx))[a-z]\w*(?=>?$)")
_WITHOUT_BF16 = frozenset({"gfx90a", "gfx1100"})

# From f64 to f32, rounded to odd: an inexact result has its last bit set, so that rounding it again, to a number with
# at least 2 bits less, equals rounding once (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
# proved algorithms using rounding to odd", 2008). If rounding to nearest went up, toward zero is one step down.
_ROUNDED_TO_ODD = """\
{to}_nearest = arith.truncf {x} : {f64} to {f32}
{to}_back = arith.extf {to}_nearest : {f32} to {f64}
{to}_size = math.absf {x} : {f64}
{to}_back_size = math.absf {to}_back : {f64}
{to}_up = arith.cmpf ogt, {to}_back_size, {to}_size : {f64}
{to}_step = arith.extui {to}_up : {i1} to {i32}
{to}_bits = tt.bitcast {to}_nearest : {f32} -> {i32}
{to}_zeroward = arith.subi {to}_bits, {to}_step : {i32}
{to}_inexact = arith.cmpf one, {to}_back, {x} : {f64}
{to}_sticky = arith.extui {to}_inexact : {i1} to {i32}
{to}_odd = arith.ori {to}_zeroward, {to}_sticky : {i32}
{to} = tt.bitcast {to}_odd : {i32} -> {f32}"""


def by_way_of_f32(ttir: str, arch: str) -> str:
    """TTIR with each of those conversions replaced by two; the same text if there are none."""
    return _CONVERSION.sub(lambda found: _as_two(found, arch), ttir)


def _as_two(found: re.Match[str], arch: str) -> str:
    source, target = (_element(found[name]) for name in ("source", "target"))
    if not _is_lacking(source, target, arch):
        return found[0]
    place, wide = found["place"], f"%wide.{found['result'][1:]}"
    types = {name: _ELEMENT.sub(name, found["source"], count=1) for name in ("f64", "f32", "i32", "i1")}
    if source == "f64":
        lines = _ROUNDED_TO_ODD.format(x=found["operand"], to=wide, **types).splitlines()
    elif source == "bf16":
        lines = [f"{wide} = arith.extf {found['operand']} : {found['source']} to {types['f32']}"]
    else:
        lines = [f"{wide} = tt.fp_to_fp {found['operand']} : {found['source']} -> {types['f32']}"]
    ways = {"f64": "arith.extf {} : {} to {}", "bf16": "arith.truncf {} : {} to {}"}
    rounding = found["rounding"] or ", rounding = rtne"
    way = ways.get(target, "tt.fp_to_fp {}" + rounding + " : {} -> {}")
    lines.append(f"{found['result']} = {way.format(wide, types['f32'], found['target'])}")
    return "\n".join(f"{found['indent']}{line}{place}" for line in lines)


def _element(type_: str) -> str:
    found = _ELEMENT.search(type_)
    return found[0] if found else ""


def _is_lacking(source: str, target: str, arch: str) -> bool:
    small = [element.startswith("f8") for element in (source, target)]
    if all(small):
        return True
    other = target if small[0] else source
    if any(small) and other == "bf16":
        # Triton emits instructions that these architectures lack; for the OCP formats it does not.
        either = source + target
        return "FNUZ" in either and arch in _WITHOUT_BF16 and compat.amd.converts_fnuz_to_bf16()
    return any(small) and other == "f64"

"""A workaround for LLVM's x86 code generator, which miscompiles masked loads if it knows that some lanes are off.

VMASKMOV of AVX and AVX2 tests the sign bit of each mask lane. Therefore LLVM 22's ``combineMaskedLoad``
(X86ISelLowering.cpp) simplifies a mask for its sign bits only. If it knows that all lanes of a register are off, but
does not see a constant yet, lanes whose boolean is still to be extended from its lowest bit become the constant 1,
whose sign bit means "off". On its next visit, ``combineMaskedLoadConstantMask`` takes any constant but 0 for "on", and
emits a plain load of the whole register. That returns values beyond the mask, from memory that may be unmapped. If LLVM
compares the load with others, it may instead fail an assertion and end the process.

The bug needs a mask that is split over several registers and has a constant in it: ``splat(c) & <1,1,1,1,0,0,0,0>`` on
64-bit lanes. Stores, gathers and scatters are not affected, nor are AVX-512, whose masks are in registers of their own,
and targets without masks, which branch.

The workaround turns the constants of such masks into values that LLVM does not know, loaded once per call of a kernel.
"""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^define [^\n]*\{\n(?:[^\s:]+:[^\n]*\n)?(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
_LOGICAL = re.compile(
    r" *%\S+ = (?:(?:and|or(?: disjoint)?|xor) <\d+ x i1> |select [^\n]*, <\d+ x i1> )[^\n]*<i1 "
)
_CONSTANT = re.compile(r"<(i1 (?:true|false|poison|undef)(?:, i1 (?:true|false|poison|undef))*)>")


def with_unknown_masks(llvm_ir: str) -> str:
    """LLVM IR text in which no mask is computed from a constant with unequal lanes."""
    if "<i1 " not in llvm_ir or "@llvm.masked.load." not in llvm_ir:
        return llvm_ir
    masks: dict[str, str] = {}
    result = _FUNCTION.sub(lambda found: _without_constants(found, masks), llvm_ir)
    lines = []
    for lanes, name in masks.items():
        bits = ["i8 1" if lane == "i1 true" else "i8 0" for lane in lanes.split(", ")]
        lines.append(f"@{name} = private constant <{len(bits)} x i8> <{', '.join(bits)}>\n")
    return result + "\n" * bool(lines) + "".join(lines)


def _without_constants(function: re.Match[str], masks: dict[str, str]) -> str:
    used: dict[str, int] = {}

    def name(constant: re.Match[str]) -> str:
        lanes = constant[1]
        used[masks.setdefault(lanes, f"tpk.mask.{len(masks)}")] = lanes.count("i1")
        return "%" + masks[lanes]

    # Looking for a word in each line is much faster than for the expression in all of the text.
    body = "\n".join(
        _CONSTANT.sub(name, line) if "<i1 " in line and _LOGICAL.match(line) else line
        for line in function["body"].split("\n")
    )
    loads = "".join(
        f"  %{mask}.bytes = load volatile <{lanes} x i8>, ptr @{mask}, align 1\n"
        f"  %{mask} = icmp ne <{lanes} x i8> %{mask}.bytes, zeroinitializer\n"
        for mask, lanes in used.items()
    )
    start = function.start("body") - function.start()
    return function[0][:start] + loads + body + "}"

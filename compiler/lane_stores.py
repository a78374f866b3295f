"""A workaround for LLVM's x86 code generator, which miscompiles masked stores of one lane of a narrowed value.

LLVM turns a store whose constant mask has one lane into a scalar store of the element before it was narrowed: for an
i64 truncated to i32, it writes eight bytes. Here, such stores are turned into scalar stores beforehand.
"""

from __future__ import annotations

import re

_NAME, _CONSTANT = "@llvm.masked.store.", "i1> <i1 "
_STORE = (
    r"^(?P<indent> *)(?:tail )?call void @llvm\.masked\.store\.\w+\.p0"
    r"\((?P<type><\d+ x (?P<element>\w+)>) (?P<value>.+), "
    r"ptr (?:captures\(none\) )?align (?P<align>\d+) (?P<pointer>[%@]\S+), "
    r"<\d+ x i1> <(?P<mask>i1 (?:true|false)(?:, i1 (?:true|false))*)>\)(?P<rest>.*)$"
)


def with_scalar_stores(llvm_ir: str) -> str:
    """LLVM IR text in which stores of a single known lane are scalar stores."""
    if _CONSTANT not in llvm_ir or _NAME not in llvm_ir:  # no mask of a store is a constant
        return llvm_ir
    count = 0

    def rewritten(found: re.Match[str]) -> str:
        nonlocal count
        lanes = [lane == "i1 true" for lane in found["mask"].split(", ")]
        if sum(lanes) != 1:
            return found[0]
        count += 1
        lane, element, pointer = lanes.index(True), found["element"], found["pointer"]
        value, place = f"%tpk.lane.{count}", f"%tpk.place.{count}"
        lines = [f"{value} = extractelement {found['type']} {found['value']}, i64 {lane}{found['rest']}"]
        if lane:
            lines.append(f"{place} = getelementptr {element}, ptr {pointer}, i64 {lane}{found['rest']}")
            pointer = place
        lines.append(f"store {element} {value}, ptr {pointer}, align {found['align']}{found['rest']}")
        return "\n".join(found["indent"] + line for line in lines)

    # Looking for words in each line is much faster than for the expression in all of the text.
    return "\n".join(
        re.sub(_STORE, rewritten, line) if _NAME in line and _CONSTANT in line else line
        for line in llvm_ir.split("\n")
    )

"""Masked stores of a single lane, which LLVM's x86 code generator gets wrong where it also narrows the value.

It turns a store whose constant mask has one lane into a scalar store, of the element as it was before it was narrowed:
of an i64 that was cut to i32, eight bytes are written. Here such stores become scalar ones beforehand.
"""

from __future__ import annotations

import re

_STORE = re.compile(
    r"^(?P<indent> *)(?:tail )?call void @llvm\.masked\.store\.\w+\.p0"
    r"\((?P<type><\d+ x (?P<element>\w+)>) (?P<value>.+), "
    r"ptr (?:captures\(none\) )?align (?P<align>\d+) (?P<pointer>[%@]\S+), "
    r"<\d+ x i1> <(?P<mask>i1 (?:true|false)(?:, i1 (?:true|false))*)>\)(?P<rest>.*)$",
    re.MULTILINE,
)


def with_scalar_stores(llvm_ir: str) -> str:
    """LLVM IR text in which stores of one lane that is known are stores of a scalar."""
    if "i1> <i1 " not in llvm_ir:  # no mask is a constant
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

    return _STORE.sub(rewritten, llvm_ir)

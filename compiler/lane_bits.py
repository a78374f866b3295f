"""A workaround for LLVM's x86 code generator, which reads the wrong register where AVX-512 is.

LLVM 22 makes VPMOVMSKB of a vector of booleans that it truncates from bytes and scatters or gathers by. That
instruction reaches xmm0 to xmm15 only, but its operand may be given one of xmm16 to xmm31: then the encoded instruction
reads the register whose number is 16 less. Here, booleans are compared instead of truncated beforehand, for which LLVM
uses mask registers.
"""

from __future__ import annotations

import re

_TRUNCATION = (
    r"^(?P<indent> *)(?P<result>%\S+) = trunc (?:nuw )?(?:nsw )?(?P<type><\d+ x (?P<element>i\d+)>) (?P<value>\S+) "
    r"to <\d+ x i1>"
)


def with_compared_booleans(llvm_ir: str) -> str:
    """LLVM IR text in which no vector is truncated to booleans."""
    if " x i1>" not in llvm_ir or " = trunc " not in llvm_ir:
        return llvm_ir
    count = 0

    def rewritten(found: re.Match[str]) -> str:
        nonlocal count
        indent, result, kind, value = found["indent"], found["result"], found["type"], found["value"]
        name = f"%tpk.bit.{count}"
        count += 1
        return (
            f"{indent}{name} = and {kind} {value}, splat ({found['element']} 1)\n"
            f"{indent}{result} = icmp ne {kind} {name}, zeroinitializer"
        )

    # Looking for words in each line is much faster than for the expression in all of the text.
    return "\n".join(
        re.sub(_TRUNCATION, rewritten, line) if " = trunc " in line and " x i1>" in line else line
        for line in llvm_ir.split("\n")
    )

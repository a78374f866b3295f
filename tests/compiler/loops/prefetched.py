"""Prefetches in the text of loops, for tests."""

from __future__ import annotations

import re
from typing import Any

from native_functions import loops_of

from triton_porting_kit.compiler import CpuTarget

SIGNATURE = {"X": "*fp32", "O": "*fp32", "n": "i32"}
PREFETCH = re.compile(r'"llvm.intr.prefetch"\((%\w+)\) <{.*rw = (\d)')


def text_of(
    kernel: Any, target: str = "sapphirerapids", signature: dict[str, str] = SIGNATURE, **constants: int
) -> str:
    """The loops of a kernel with these parameters for the CPU of a name."""
    text: str = loops_of(kernel, signature, CpuTarget.named(target), **{"B": 256, **constants}).text
    return text


def steps(text: str, *, writes: bool = False) -> list[str]:
    """What is added to the addresses of rows that are prefetched, to read or to write: a constant, or where it comes from.

    Where a loop is there twice, for stores past the caches too, it counts once.
    """
    defined = dict(re.findall(r"(%\w+) = (.*)", text))
    found = []
    for place, kind in PREFETCH.findall(text):
        if int(kind) != writes:
            continue
        (index,) = re.findall(r"getelementptr %\w+\[(%\w+)\]", defined[place])
        found.append(defined[index].removeprefix("arith.constant ").removesuffix(" : i64"))
    return list(dict.fromkeys(found))

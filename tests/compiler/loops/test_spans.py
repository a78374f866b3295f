"""Where loops are split: what the artefact of a kernel with bounds holds."""

from __future__ import annotations

import re
from typing import Any

import sample_loops
from native_functions import loops_of

SIGNATURE = {"X": "*fp32", "O": "*fp32", "n": "i32"}


def text_of(kernel: Any, **constexprs: Any) -> str:
    text: str = loops_of(kernel, SIGNATURE, **({"B": 256} | constexprs)).text
    return text


def test_only_the_end_of_a_chain_is_masked() -> None:
    text = text_of(sample_loops.chain)
    whole, end = re.findall(r"scf\.for %\d+ = (%\d+) to (%\d+)", text)[-2:]
    # The second loop goes on where the first ends, and ends where the bound is.
    assert end[0] == whole[1]
    assert end[1] != whole[1]
    assert text.count("llvm.intr.masked.load") == text.count("llvm.intr.masked.store") == 1


def test_a_mask_that_the_bound_implies_is_not_computed_in_bounds() -> None:
    text = text_of(sample_loops.centred)
    assert text.count("arith.cmpi slt, %") - len(re.findall(r"arith\.cmpi slt, .* : i64", text)) == 2
    # One of the load, one of the mask, both in the masked part only.
    assert text.count("llvm.intr.masked.load") == 1


def test_a_reduction_of_padding_may_end_early() -> None:
    assert text_of(sample_loops.centred).count("scf.while") == 1
    # The padding here is another number in every chunk.
    assert "scf.while" not in text_of(sample_loops.counted)


def test_tiles_of_one_chunk_are_not_split() -> None:
    text = text_of(sample_loops.chain, B=4)
    assert len(re.findall(r"scf\.for .* step", text)) == 1
    assert "} else {" in text

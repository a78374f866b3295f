"""Where loops are split: what the artefact of a kernel with bounds holds."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sample_loops
from native_functions import loops_of

from triton_porting_kit.compiler.target import CpuTarget

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


def test_much_code_is_written_once_for_both_parts() -> None:
    text = text_of(sample_loops.dropped)
    _programs, chunks = re.findall(r"scf\.for %\d+ = %\w+ to %\w+", text)
    assert text.count("arith.sitofp") == 1
    # Only the read and the store ask whether the chunk is in bounds, with masks in the second branch of each.
    inside = text[text.index(chunks) :]
    for plain, masked in (("llvm.load", "llvm.intr.masked.load"), ("llvm.store", "llvm.intr.masked.store")):
        assert inside.count(plain) == inside.count(masked) == 1
        assert inside.index(plain) < inside.index(masked)
    assert inside.count("scf.if") == inside.count("} else {") == 2


@pytest.mark.parametrize(("cpu", "loops"), [("sapphirerapids", 1), ("haswell", 2)])
def test_gathers_share_a_loop_where_registers_hold_masks(cpu: str, loops: int) -> None:
    text = loops_of(sample_loops.dropped_apart, SIGNATURE, target=CpuTarget.named(cpu), B=256).text
    # What is gathered may lie in the array that is stored to: then it is gathered before, for a loop of its own.
    assert text.count("arith.sitofp") == 1 + loops
    assert "{\n}" not in re.sub(" ", "", text)  # no branch is empty


@pytest.mark.parametrize(("cpu", "masks"), [("sapphirerapids", True), ("haswell", False)])
def test_lanes_out_of_bounds_read_another_address_where_gathers_take_no_mask(cpu: str, masks: bool) -> None:
    text = loops_of(sample_loops.dropped_apart, SIGNATURE, target=CpuTarget.named(cpu), B=256).text
    everywhere = re.findall(r"(%\d+) = arith\.constant dense<true>", text)
    used = re.findall(r"llvm\.intr\.masked\.gather %\d+, (%\d+),", text)
    assert used
    assert (set(used) <= set(everywhere)) is not masks
    assert ("vector.broadcast %args : !llvm.ptr" in text) is not masks


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


def test_what_a_loop_carries_is_not_written_where_it_stays_as_it_is() -> None:
    text = text_of(sample_loops.kept_out_of_bounds)
    before = text[: text.index("llvm.intr.masked.load")]
    whole, end = re.findall(r"scf\.for %\d+ = (%\d+) to (%\d+)", before)[-2:]
    assert end[0] == whole[1]
    # It ends where the bound is, which is at most the tile's size.
    assert re.search(rf"{end[1]} = arith\.minsi ", before)

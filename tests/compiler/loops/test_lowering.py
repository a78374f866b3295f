"""What is kept in scratch, what is not, and in which order memory is read and written."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sample_loops
from native_functions import loops_of, scratch_of_a_program

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir

SIGNATURE = {"X": "*fp32", "O": "*fp32", "n": "i32"}
BLOCK = 256
BYTES = 4 * BLOCK


def lowered(kernel: Any, target: CpuTarget | None = None, **constexprs: Any) -> Any:
    return loops_of(kernel, SIGNATURE, target, **({"B": BLOCK} | constexprs))


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        (sample_loops.chain, 0),
        # The exponentials, which the division needs again.
        (sample_loops.used_twice, BYTES),
        # The last exponentials only: the others are not needed again.
        (sample_loops.chain_used_twice, BYTES),
        # Both stores are done in one loop.
        (sample_loops.loaded_before_a_store, 0),
        (sample_loops.loaded_before_an_atomic, BYTES),
        # The loaded values; multiples of a range are computed again.
        (sample_loops.used_in_a_loop, BYTES),
        # One i64 of each row is kept, not the tile of its broadcast.
        (sample_loops.spread_in_a_loop, 2 * BYTES),
        (sample_loops.carried_by_nested_loops, BYTES),
        (sample_loops.shifted, BYTES),
        # Read in order in case both arguments are one array.
        (sample_loops.other_array, BYTES),
        (sample_loops.loaded_after_a_store, BYTES),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_scratch_that_a_kernel_takes(kernel: Any, size: int) -> None:
    result = lowered(kernel)
    assert result.scratch_bytes == size
    assert f"(dense<[{size}, 0]> : tensor<2xi64>)" in result.text


def test_transposed_load_goes_through_no_scratch_of_its_own() -> None:
    result = lowered(sample_loops.transposed, B=16)
    # Only for the case that both arguments are one array.
    assert result.scratch_bytes == 4 * 16 * 16
    assert "llvm.icmp" in result.text


def test_accumulator_stays_in_its_place() -> None:
    """One buffer for the carried accumulator, beside the left operand of as many iterations as wait."""
    target = CpuTarget.named("x86-64-v4")
    iterations = target.strip_bytes() // (4 * 32 * 32)
    loops = lowered(sample_loops.product, target, B=32)
    assert scratch_of_a_program(loops) == (1 + iterations) * 4 * 32 * 32


def test_element_wise_chain_is_one_loop_in_each_version() -> None:
    text = lowered(sample_loops.chain).text
    loops = re.findall(r"scf\.for .* step", text)
    # The loop over programs, and those over the tile: wholly in bounds, past the caches or not, and the end of it.
    assert len(loops) == 3 + text.count("nontemporal")
    assert text.count("llvm.intr.masked.load") == text.count("llvm.intr.masked.store") == 1


def test_short_rows_are_reduced_and_filled_without_loops() -> None:
    def loops(chunks: int) -> int:
        target = CpuTarget.named("x86-64-v4")
        text = lowered(sample_loops.sum_of_iterations, target, B=chunks * target.lanes).text
        return len(re.findall(r"scf\.for .* step", text))

    # Those over programs, over iterations and over the tile in an iteration; and to fill the tile and to add it up.
    assert loops(4) == 3
    assert loops(64) == 5


def test_reads_come_before_the_write_that_disturbs_them() -> None:
    text = lowered(sample_loops.loaded_before_an_atomic).text
    lines = text.splitlines()
    comments = [line.strip() for line in lines if "// tpk.store" in line]
    assert len(comments) == 2
    assert all("sample_loops.py" in comment for comment in comments)
    first_store = next(i for i, line in enumerate(lines) if "// tpk.store" in line)
    # The copy is made before the first store is begun.
    assert any("llvm.store" in line for line in lines[:first_store])


@pytest.mark.parametrize("kernel", [sample_loops.chain, sample_loops.used_twice, sample_loops.product])
def test_text_is_valid_mlir(kernel: Any) -> None:
    module = mlir.parse_module(lowered(kernel, B=32).text)
    assert module.operation.verify()


def test_unknown_operations_say_where_and_what_to_do() -> None:
    from native_functions import host

    from triton_porting_kit.compiler.loops import lower_to_loops

    text = """module { func.func public @k(%p: !llvm.ptr) attributes {tpk.kernel} {
      "tpk.unheard_of"(%p) : (!llvm.ptr) -> () loc("kernel.py":7:3)
      return } }"""
    with pytest.raises(CompilationError, match="unheard_of") as raised:
        lower_to_loops(mlir.parse_module(text), host())
    assert raised.value.operation == "tpk.unheard_of"
    assert str(raised.value.location) == "kernel.py:7:3"
    assert raised.value.remedy

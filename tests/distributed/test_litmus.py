"""What docs/distributed.md says of the order of memory, between processes."""

from __future__ import annotations

import platform

import pytest

from triton_porting_kit.conformance.distributed import litmus as litmus_programs
from triton_porting_kit.conformance.distributed.workers import Workers

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="is only said of x86-64")


@pytest.mark.parametrize(("ranks", "rounds"), [(2, 1000), (3, 20)])
def test_message_passing(workers: Workers, ranks: int, rounds: int) -> None:
    assert workers.run(litmus_programs.passing, ranks, rounds) == [0] * ranks


def test_memory_is_reused_after_it_was_read(workers: Workers) -> None:
    assert workers.run(litmus_programs.reuse, 2, 1000) == [0, 0]


def test_message_passing_by_fences(workers: Workers) -> None:
    assert workers.run(litmus_programs.flags, 2, 500) == [0, 0]


@x86
def test_store_buffering_with_a_fence(workers: Workers) -> None:
    assert workers.run(litmus_programs.buffering, 2, 1000) == [0, 0]


@x86
def test_independent_reads_of_independent_writes(workers: Workers) -> None:
    assert workers.run(litmus_programs.reads, 4, 40) == [0] * 4

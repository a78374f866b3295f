"""Programs in processes of their own: what they find, how they end, and what they leave alone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.memory import HostMemory
from triton_porting_kit.conformance.stress import outcome
from triton_porting_kit.conformance.stress.configuration import DEFAULT, Configuration
from triton_porting_kit.conformance.stress.forking import in_child
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.outcome import Outcome
from triton_porting_kit.conformance.stress.pages import PAGE, EdgeArray, in_process, placed
from triton_porting_kit.conformance.types import KINDS

I32 = KINDS["i32"]


def test_what_a_child_finds_is_told() -> None:
    found = in_child(
        lambda: Outcome(outcome.WRONG, os.environ["TPK_NUM_THREADS"]), 30, {"TPK_NUM_THREADS": "3"}
    )
    assert found == Outcome(outcome.WRONG, "3")


def test_a_long_answer_comes_whole() -> None:
    assert in_child(lambda: Outcome(outcome.ERROR, "x" * 200_000), 30, {}).message == "x" * 200_000


def test_a_child_that_dies_is_a_crash() -> None:
    def die() -> Outcome:
        os.kill(os.getpid(), signal.SIGSEGV)
        return Outcome(outcome.PASS)

    found = in_child(die, 30, {})
    assert (found.kind, found.message) == (outcome.CRASH, "the process died of SIGSEGV")


def test_a_child_that_leaves_is_a_crash_with_what_it_said() -> None:
    def leave() -> Outcome:
        raise ValueError("no such thing")

    found = in_child(leave, 30, {})
    assert found.kind == outcome.CRASH
    assert "exit status 1" in found.message
    assert "no such thing" in found.message


def test_a_child_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    children = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    found = in_child(lambda: time.sleep(1000), 0.2, {})  # type: ignore[arg-type, func-returns-value]
    assert found == Outcome(outcome.TIMEOUT, "no end after 0.2 s")
    (child,) = children
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_worker_that_forks_has_one_thread() -> None:
    """It would take other threads' locks along."""
    with Isolated("cpu") as worker:
        assert worker.forks
        for seed in range(4):  # some of which it has run itself
            worker.run(seed)
        assert worker._process is not None
        assert len(os.listdir(f"/proc/{worker._process.pid}/task")) == 1


def test_compiled_kernels_do_not_pile_up() -> None:
    with Isolated("cpu") as worker:
        folder = Path(worker._cache.name)
        sizes = []
        for seed in (3, 4, 5):
            worker.run(seed)
            sizes.append(sum(1 for _ in folder.rglob("*.obj")))
        assert sizes == [1, 1, 1]
    assert not folder.exists()


def test_threads_are_those_of_the_configuration() -> None:
    with Isolated("cpu") as worker:
        assert worker.run(3, configuration=Configuration(threads=2)) == Outcome(outcome.PASS)
        wrong = worker.run(3, configuration=Configuration(threads=5000))
    assert wrong.kind == outcome.ERROR
    assert "TPK_NUM_THREADS is '5000'" in wrong.message
    assert str(DEFAULT) == ""


# --- pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["end", "start"])
def test_arrays_lie_beside_pages_that_may_not_be_touched(place: str) -> None:
    array = placed(memory(), place, I32, np.arange(5))
    assert isinstance(array, EdgeArray)
    assert array.read().tolist() == [0, 1, 2, 3, 4]
    assert array.is_unchanged()
    array.check_guards()
    edge = array.data_ptr() + 20 if place == "end" else array.data_ptr()
    assert edge % PAGE == 0
    beyond = edge if place == "end" else edge - 4

    def touch() -> Outcome:
        return Outcome(outcome.PASS, str(ctypes.c_int32.from_address(beyond).value))

    assert in_child(touch, 30, {}).message == "the process died of SIGSEGV"


def test_elsewhere_arrays_lie_between_zones() -> None:
    assert not in_process(HostMemory())
    assert not isinstance(placed(HostMemory(), "end", I32, np.arange(5)), EdgeArray)
    assert not isinstance(placed(memory(), "zones", I32, np.arange(5)), EdgeArray)
    assert sys.platform == "linux"

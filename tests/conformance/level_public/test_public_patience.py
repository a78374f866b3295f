"""A time limit counts what a process uses, not what others on the machine do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from triton_porting_kit.conformance.public import patience
from triton_porting_kit.conformance.public.patience import Patience, processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.5: pass"
CHILD = (
    f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {BUSY!r}]);"
    "print(flush=True); time.sleep(60)"
)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def test_time_of_children_counts(started: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE)
    started.append(process)
    end = time.monotonic() + 60
    while processor_seconds(process.pid) < 0.3:  # the child runs
        assert time.monotonic() < end
        time.sleep(0.02)
    assert process.stdout is not None
    process.stdout.readline()
    assert processor_seconds(process.pid) >= 0.5, "the child has ended"


def test_there_is_no_such_process() -> None:
    assert processor_seconds(2**30) == 0


class Clock:
    """Stands for the clock and for the time on processors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.used = 100.0
        monkeypatch.setattr(patience, "processor_seconds", lambda pid: self.used)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def step(self, seconds: float, used: float) -> None:
        self.now += seconds
        self.used += used


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(("part", "after"), [(1.0, 10), (0.25, 40)], ids=["alone", "beside others"])
def test_a_slow_process_ends_when_it_has_used_its_time(clock: Clock, part: float, after: int) -> None:
    limit = Patience(1, 10.0, 1)
    steps = 0
    while limit.wait():
        clock.step(1.0, part)
        steps += 1
    assert steps == after


def test_each_thread_has_its_time(clock: Clock) -> None:
    limit = Patience(1, 10.0, 2)
    clock.step(10.0, 19.0)
    assert limit.wait()
    clock.step(1.0, 1.0)
    assert not limit.wait()


def test_a_process_that_waits_ends_by_the_clock(clock: Clock) -> None:
    limit = Patience(1, 10.0, 1)
    clock.step(8.0, 4.0)
    assert limit.wait()
    clock.step(9.0, 0.01)
    assert limit.wait()
    clock.step(1.0, 0.0)
    assert not limit.wait()

"""Kernels compiled by several processes at once: shared out, found again, and right if a process is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path

import pytest

from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import together
from triton_porting_kit.toolchain.together import _Processes


class Kernels:
    """Compilations into a folder as a cache: the first call of each writes a file, later ones read it."""

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        self._folder = folder
        self._seconds = seconds

    def compiled(self, name: str) -> Callable[[], str]:
        def call() -> str:
            path = self._folder / name
            if not path.exists():
                time.sleep(self._seconds)
                path.write_text(f"{name} {os.getpid()}")
            return path.read_text()

        return call

    def run(self, count: int, names: list[str]) -> list[str]:
        executor = _Processes(count)
        futures = []
        for name in names:
            call = self.compiled(name)
            executor.expect(call)
            futures.append(executor.submit(call))
        executor.run()
        return [future.result(timeout=0) for future in futures]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_kernel_is_made_once_by_some_process(tmp_path: Path, count: int) -> None:
    names = [f"kernel{i}" for i in range(9)]
    results = Kernels(tmp_path, 0.05).run(count, names)
    assert [result.split()[0] for result in results] == names
    assert len({result.split()[1] for result in results}) == count
    assert len(os.listdir(tmp_path)) == len(names)


def test_what_is_not_expected_to_take_long_stays_here(tmp_path: Path) -> None:
    executor = _Processes(2)
    futures = [executor.submit(os.getpid) for _ in range(4)]
    executor.run()
    assert {future.result(timeout=0) for future in futures} == {os.getpid()}


def test_a_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parent, kernels = os.getpid(), Kernels(tmp_path)

    def hanging(name: str) -> Callable[[], str]:
        def call() -> str:
            # Slow enough that both processes make one.
            time.sleep(60 if os.getpid() != parent else 0.1)
            return Kernels.compiled(kernels, name)()

        return call

    monkeypatch.setattr(kernels, "compiled", hanging)
    start = time.monotonic()
    results = kernels.run(2, ["a", "b", "c"])
    assert results == [f"{name} {parent}" for name in "abc"]
    assert time.monotonic() - start < 30


def test_a_process_that_dies_costs_only_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parent, kernels = os.getpid(), Kernels(tmp_path)

    def deadly(name: str) -> Callable[[], str]:
        def call() -> str:
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.05)
            return Kernels.compiled(kernels, name)()

        return call

    monkeypatch.setattr(kernels, "compiled", deadly)
    assert kernels.run(2, ["a", "b", "c"]) == [f"{name} {parent}" for name in "abc"]


def test_exceptions_are_those_of_this_process() -> None:
    def fail() -> None:
        raise ValueError(f"process {os.getpid()}")

    executor = _Processes(2)
    futures = []
    for _ in range(2):
        executor.expect(fail)
        futures.append(executor.submit(fail))
    executor.run()
    for future in futures:
        with pytest.raises(ValueError, match=f"process {os.getpid()}"):
            future.result(timeout=0)


def test_an_interrupt_leaves_nothing_to_wait_for() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    executor = _Processes(1)
    futures = [executor.submit(interrupt), executor.submit(os.getpid)]
    with pytest.raises(KeyboardInterrupt):
        executor.run()
    assert set(as_completed(futures, timeout=0)) == set(futures)
    assert all(future.cancelled() for future in futures)


def test_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(together.PROCESSES, "")
    assert 1 <= together.processes() <= 8
    monkeypatch.setenv(together.PROCESSES, "3")
    assert together.processes() == 3
    for text in ("0", "two", "-1"):
        monkeypatch.setenv(together.PROCESSES, text)
        with pytest.raises(OptionError, match=rf"{together.PROCESSES} is '{text}'\n.*set it to a number"):
            together.processes()

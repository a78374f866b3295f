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
    """Compilations into a folder as a cache: the first call of each writes a file, later ones read it.

    No process ends its first one before `together` processes have begun one, so that each makes some.
    """

    def __init__(self, folder: Path, together: int = 1) -> None:
        self._folder, self._begun = folder / "kernels", folder / "begun"
        self._together = together
        for each in (self._folder, self._begun):
            each.mkdir()

    def made(self) -> list[str]:
        return sorted(os.listdir(self._folder))

    def begin(self) -> None:
        (self._begun / str(os.getpid())).touch()
        end = time.monotonic() + 60
        while len(os.listdir(self._begun)) < self._together:
            assert time.monotonic() < end, "there is no other process"
            time.sleep(0.01)

    def compiled(self, name: str) -> Callable[[], str]:
        def call() -> str:
            path = self._folder / name
            if not path.exists():
                self.begin()
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
def test_every_kernel_is_made_once_by_some_process(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_PATIENCE", 1e5)  # for a process that the machine leaves no time
    names = [f"kernel{i}" for i in range(9)]
    kernels = Kernels(tmp_path, count)
    results = kernels.run(count, names)
    assert [result.split()[0] for result in results] == names
    assert len({result.split()[1] for result in results}) == count
    assert kernels.made() == names


def test_what_is_not_expected_to_take_long_stays_here(tmp_path: Path) -> None:
    executor = _Processes(2)
    futures = [executor.submit(os.getpid) for _ in range(4)]
    executor.run()
    assert {future.result(timeout=0) for future in futures} == {os.getpid()}


def test_a_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parent, kernels = os.getpid(), Kernels(tmp_path, 2)

    def hanging(name: str) -> Callable[[], str]:
        def call() -> str:
            if os.getpid() != parent:
                kernels.begin()
                time.sleep(600)
            return Kernels.compiled(kernels, name)()

        return call

    monkeypatch.setattr(kernels, "compiled", hanging)
    results = kernels.run(2, ["a", "b", "c"])
    assert results == [f"{name} {parent}" for name in "abc"]


def test_a_process_that_dies_costs_only_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parent, kernels = os.getpid(), Kernels(tmp_path, 2)

    def deadly(name: str) -> Callable[[], str]:
        def call() -> str:
            if os.getpid() != parent:
                kernels.begin()
                os.kill(os.getpid(), signal.SIGKILL)
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

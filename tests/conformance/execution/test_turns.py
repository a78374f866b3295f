"""Turns: many beside each other, or one alone, whatever becomes of the processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from triton_porting_kit.conformance.execution.turns import Turns


def nothing() -> None:
    """Nobody has stopped the run."""


def await_gate(folder: Path) -> None:
    """Wait until somebody holds the gate."""
    with open(folder / "gate", "a") as gate:
        while True:
            try:
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(gate, fcntl.LOCK_UN)
            time.sleep(0.01)


def test_several_go_on_beside_each_other(tmp_path: Path) -> None:
    with Turns(str(tmp_path), nothing).beside(), Turns(str(tmp_path), nothing).beside():
        pass


def test_one_alone_waits_for_those_that_run_and_holds_up_those_that_come(tmp_path: Path) -> None:
    order: list[str] = []
    turns = [Turns(str(tmp_path), nothing) for _ in range(3)]
    comes = threading.Event()

    def alone() -> None:
        with turns[1].alone():
            order.append("alone")
            comes.wait()
            time.sleep(0.2)
            order.append("alone ends")

    def later() -> None:
        comes.set()
        with turns[2].beside():
            order.append("later")

    with turns[0].beside():
        one = threading.Thread(target=alone)
        one.start()
        await_gate(tmp_path)
        two = threading.Thread(target=later)
        two.start()
        time.sleep(0.2)
        order.append("first ends")
    one.join()
    two.join()
    assert order == ["first ends", "alone", "alone ends", "later"]


def test_a_process_that_dies_holds_nothing_up(tmp_path: Path) -> None:
    if (pid := os.fork()) == 0:
        Turns(str(tmp_path), nothing).alone().__enter__()
        os._exit(0)
    os.waitpid(pid, 0)
    with Turns(str(tmp_path), nothing).alone():
        pass


def test_waiting_ends_when_the_run_does(tmp_path: Path) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with Turns(str(tmp_path), nothing).beside(), pytest.raises(KeyboardInterrupt):
        Turns(str(tmp_path), stopped).alone().__enter__()
    with Turns(str(tmp_path), stopped).alone():
        pass


def test_without_a_folder_there_is_nobody_else() -> None:
    with Turns("", nothing).alone(), Turns("", nothing).beside():
        pass

"""The part of `tpk demo` that trains."""

from __future__ import annotations

import io
from typing import Any

import pytest
from host_backend import NAME
from rich.console import Console

from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.cli import demo, training


class Driver:
    torch_device = NAME


def printed(driver: Any) -> tuple[bool, str]:
    file = io.StringIO()
    ok = demo.train_there(Console(file=file, width=120), driver)
    return ok, file.getvalue()


def test_a_transformer_trains_as_on_the_cpu(chip: Any) -> None:
    ok, text = printed(Driver)
    assert ok
    assert "operators on the CPU: none" in text
    first, last = (line.split() for line in text.splitlines() if line.split()[:1] in (["1"], ["12"]))
    assert first[1] == first[2]
    assert float(last[1]) < float(first[1]) - 0.5


def test_nothing_is_trained_without_a_torch_device() -> None:
    assert printed(CPUDriver) == (True, "")


def test_without_torch_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    ok, text = printed(Driver)
    assert ok
    assert "torch is not installed" in text


def test_an_error_fails_the_demo(chip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(device: str) -> Any:
        raise RuntimeError(f"{device} is lost")

    monkeypatch.setattr(training, "train", fail)
    assert printed(Driver) == (False, f"training: RuntimeError: {NAME} is lost\n")


@pytest.mark.parametrize(
    ("losses", "ok"), [([3.0, 2.0], True), ([3.0, 2.1], False), ([3.0, 3.0], False)], ids=str
)
def test_losses_are_judged(losses: list[float], ok: bool) -> None:
    expected = [3.0, 3.0] if losses[-1] == 3.0 else [3.0, 2.0]
    assert training.Training(NAME, losses, expected, 1.0, 0.1, {}).ok is ok

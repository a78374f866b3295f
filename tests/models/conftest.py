"""`make test-models` runs these tests where the torch device of a generated backend and public packages are installed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from importlib.metadata import version

import pytest


@pytest.fixture(scope="session")
def device() -> str:
    """The type of the torch device that is installed."""
    import torch

    found = torch.accelerator.current_accelerator()
    assert found is not None, "no torch device is installed; see the target test-models of the Makefile"
    return found.type


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test compiles anew."""
    yield
    import torch

    torch._dynamo.reset()


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Other runs do not collect these tests: what they import need not be installed."""
    return None if config.option.markexpr == "models" else True


_outcomes: dict[str, dict[str, str]] = {}
"""Of each public model: by the test's name, ``passed``, ``failed`` or ``skipped``, which is an expected failure."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and "test_public_models.py" in report.nodeid:
        test, _, model = report.nodeid.rpartition("::")[2].rstrip("]").partition("[")
        _outcomes.setdefault(model, {})[test] = report.outcome


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of public models in docs/pytorch.md."""
    if not _outcomes:
        return
    import torch
    import transformers

    words = {"passed": "agrees", "failed": "**differs**", "skipped": "Inductor's own error", "": ""}
    terminalreporter.write_line(
        f"{date.today()}, torch {torch.__version__}, triton {version('triton')}, transformers {transformers.__version__}"
    )
    terminalreporter.write_line("| model | virtual NPU | CPU |\n|---|---|---|")
    for model, found in _outcomes.items():
        columns = (
            found.get(test, "")
            for test in ("test_compiled_for_the_device", "test_compiled_to_triton_for_the_cpu")
        )
        terminalreporter.write_line(f"| {model} | {' | '.join(words[column] for column in columns)} |")

"""`make test-models` runs these tests where the torch device of a generated backend and public packages are installed."""

from __future__ import annotations

from collections.abc import Iterator

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

"""Training, compiled, with every operator on the device. `make test-models` does more of it on the virtual NPU."""

from __future__ import annotations

from typing import Any

from host_backend import NAME
from training import check


def test_losses_are_those_of_the_cpu(chip: Any) -> None:
    check("convolutions", NAME, steps=8)

"""A hundred steps of training on the virtual NPU, with every operator there."""

from __future__ import annotations

import pytest
from training import OPTIMIZERS, check

pytestmark = pytest.mark.models


@pytest.mark.parametrize("network", OPTIMIZERS)
def test_losses_are_those_of_the_cpu(device: str, network: str) -> None:
    check(network, device, steps=100)

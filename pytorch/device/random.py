"""The random state of the device, which is apart from the CPU's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.generators import default_generator as _generator

default_generators = (_generator,)
"""One for each device. They live in the memory of the host."""


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    _generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices. ``torch.manual_seed`` calls it."""
    manual_seed(seed)


def seed() -> int:
    """Seed the generator with a random number, and return that."""
    return _generator.seed()


def seed_all() -> None:
    """Seed the generators of all devices with a random number."""
    seed()


def initial_seed() -> int:
    """The seed."""
    return _generator.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the generator."""
    return _generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Restore a state of the generator."""
    _generator.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of the generators of all devices."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restore the states of the generators of all devices."""
    for state in new_states:
        set_rng_state(state)

"""Generators of random numbers, and their states."""

from __future__ import annotations

from typing import Any

import torch
from host_backend import NAME


def draw(generator: torch.Generator | None = None) -> torch.Tensor:
    return torch.rand(5, device=NAME, generator=generator).cpu()


def test_a_generator_of_the_device(chip: Any) -> None:
    generator = torch.Generator(device=NAME).manual_seed(3)
    assert isinstance(generator, torch.Generator)
    first, second = draw(generator), draw(generator)
    assert not first.equal(second)
    assert draw(torch.Generator(NAME).manual_seed(3)).equal(first)


def test_other_generators_are_made_as_before(chip: Any) -> None:
    assert torch.Generator().device.type == torch.Generator("cpu").device.type == "cpu"
    assert torch.Generator(device="cpu").manual_seed(1).initial_seed() == 1
    assert isinstance(torch.default_generator, torch.Generator)
    assert isinstance(torch.Generator(), torch._C.Generator)
    assert not isinstance(torch.empty(1), torch.Generator)


def test_states_are_saved_and_restored(chip: Any) -> None:
    torch.manual_seed(5)
    with torch.random.fork_rng(devices=[0], device_type=NAME):
        inside = draw()
        torch.rand(2)
    assert draw().equal(inside)
    state = chip.get_rng_state()
    first = draw()
    chip.set_rng_state(state)
    assert draw().equal(first)

"""The time of random launches, against an exact and independent account of the same model."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from npu_schedule import LOAD, ORDER, PRODUCT, SHARED, STORE, WAIT, WORK, Schedule, Step
from npus import KERNELS, Npu, build
from test_npu_time import cycles

from triton_porting_kit.chips import CHIPS, load
from triton_porting_kit.chips.files import parse

# Fewer bytes and shorter queues than n1's, so that transfers and queues get in each other's way.
NARROW = parse(
    CHIPS["n1"]
    .read_text()
    .replace("bytes_per_cycle = 768", "bytes_per_cycle = 300")
    .replace("bytes_per_cycle = 512", "bytes_per_cycle = 200", 1)
    .replace("queue = 16", "queue = 3")
)


@pytest.fixture(scope="module", params=["n1", "narrow"])
def chip(request: pytest.FixtureRequest) -> Iterator[Npu]:
    with Npu(load("n1") if request.param == "n1" else NARROW) as opened:
        yield opened


@pytest.fixture(scope="module")
def kernels(chip: Npu, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("kernels"), KERNELS.read_text(), chip.description)


def random_steps(generator: random.Random) -> list[Step]:
    """What a core does: at most 60 transfers, of up to 8 KiB, with waits and orders for what is issued."""
    issued = {1: 0, 2: 0, 3: 0}
    steps: list[Step] = []
    for _ in range(generator.randrange(60)):
        kind = generator.choice([WORK, LOAD, LOAD, STORE, SHARED, PRODUCT, WAIT, ORDER])
        unit = generator.choice([2, 3])
        size = 64 * generator.randrange(1, 129)
        if kind == WORK:
            steps.append((WORK, 0, generator.randrange(1, 200), 0))
        elif kind == PRODUCT:
            steps.append((PRODUCT, 1, generator.randrange(1, 64), 0))
            issued[1] += 1
        elif kind in (LOAD, STORE, SHARED):
            steps.append((kind, unit, size, 0))
            issued[unit] += 1
        else:
            other = generator.choice([1, 2, 3])
            token = generator.randrange(issued[other] + 1)
            if kind == WAIT:
                steps.append((WAIT, other, 0, token))
            elif token:
                steps.append((ORDER, generator.choice([1, 2, 3]), other, token))
    return steps


@pytest.mark.parametrize("seed", range(20))
def test_random_launches(chip: Npu, kernels: bytes, seed: int) -> None:
    generator = random.Random(seed)
    programs = [random_steps(generator) for _ in range(generator.choice([1, 2, 3, 8]))]
    table: list[int] = []
    lists: list[int] = []
    for steps in programs:
        table += [2 + 2 * len(programs) + len(lists), len(steps)]
        lists += [number for step in steps for number in step]
    x = chip.alloc(8 << 20)
    found = cycles(
        chip, lambda: chip.launch_kernel(kernels, "play", len(programs), x, x + (1 << 20), *table, *lists)
    )
    chip.free(x)
    expected = float(Schedule(chip.description, programs).cycles())
    assert found - 1000 == pytest.approx(expected, abs=1.01)

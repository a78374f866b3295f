"""The time that ranks take on chips with links, against what the descriptions say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import triton
import triton.language as tl

import triton_porting_kit.language as tpl
from triton_porting_kit.chips import ChipDescription, Link, load
from triton_porting_kit.conformance.distributed.ranks import wait_kernel
from triton_porting_kit.distributed import Collectives, Group
from triton_porting_kit.distributed.model.timing import time_ranks
from triton_porting_kit.distributed.model.timing.ports import Port, Window
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import InvalidArgument, RanksStuck

CHIP = load("n1")
BLOCK = 4096


def linked(**changes: int) -> ChipDescription:
    assert CHIP.link is not None
    return replace(CHIP, link=replace(CHIP.link, **changes))


def test_a_port_moves_one_thing_at_a_time_and_fills_gaps() -> None:
    port = Port(10.0)
    assert port.move(100, 0) == 10
    assert port.move(100, 50) == 60
    assert port.move(100, 5) == 20
    assert port.move(500, 0) == 80  # 20 to 50, and 60 to 80
    assert port.move(10, 0) == 81
    assert port.busy_cycles == 81


def test_a_window_has_room_when_enough_have_ended() -> None:
    window = Window(2)
    assert window.room(0) == 0
    for end in (30.0, 10.0):
        window.add(end)
    assert window.room(0) == 10
    assert window.room(15) == 15


@triton.jit
def send_kernel(group, x, y, arrived, n, BLOCK: tl.constexpr):
    """Rank 0 puts x to y on rank 1, which waits for it."""
    if tpl.rank(group) == 0:
        for start in range(0, n, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            tpl.put(group, y + offsets, tl.load(x + offsets, mask=offsets < n), 1, offsets < n)
        tpl.notify(group, arrived, 1)
    else:
        tpl.wait(group, arrived, 1)


@triton.jit
def product_kernel(a, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def sending(count: int) -> Callable[[Group], None]:
    def body(group: Group) -> None:
        x, y, arrived = group.zeros(count, "float32"), group.zeros(count, "float32"), group.zeros(1, "int32")
        send_kernel[(1,)](group.context, x, y, arrived, count, BLOCK=BLOCK)

    return body


@pytest.mark.parametrize("rate", [16, 64])
def test_what_is_sent_takes_the_links_time(rate: int) -> None:
    count, latency = 100_000, 5000
    (found,) = time_ranks(sending(count), 2, linked(bytes_per_cycle=rate, latency=latency))
    least = CHIP.launch_cycles + 4 * count / rate + latency
    # The notification leaves when the last tile has arrived; the first tile is loaded before.
    assert least + latency <= found.cycles <= 1.1 * least + latency + 3000
    assert 4 * count <= found.bytes_sent <= 4 * count + 1000
    assert found.kernel == "send_kernel"
    assert found.link_use == pytest.approx(found.bytes_sent / rate / found.cycles, rel=0.01)


def test_a_product_takes_the_matrix_units_time() -> None:
    assert CHIP.matrix is not None
    unit = CHIP.matrix.product("fp16", "fp16", "fp32")
    assert unit is not None

    def body(group: Group) -> None:
        a, b = (DeviceArray.empty((128, 128), "float16", group.device) for _ in range(2))
        product_kernel[(1,)](a, b, DeviceArray.empty((128, 128), "float32", group.device), BLOCK=128)

    (found,) = time_ranks(body, 1, CHIP)
    tiles = (128 // unit.tile[0]) * (128 // unit.tile[1]) * (128 // unit.tile[2])
    moved = (2 * 2 + 4) * 128 * 128 / sum(channel.bytes_per_cycle for channel in CHIP.channels)
    least = CHIP.launch_cycles + tiles * unit.cycles + moved
    assert least <= found.cycles <= least + 1000


@pytest.mark.parametrize("algorithm", ["two_shot", "ring"])
def test_large_all_reduces_come_near_to_what_the_links_allow(algorithm: str) -> None:
    ranks, count = 4, 4 << 20

    def body(group: Group) -> None:
        x = group.zeros(count, "float32")
        Collectives(group, programs=7, block=8192).all_reduce(x, algorithm=algorithm)

    (found,) = time_ranks(body, ranks, CHIP, heap_bytes=64 << 20)
    assert CHIP.link is not None
    bound = 2 * (ranks - 1) / ranks * 4 * count / CHIP.link.bytes_per_cycle
    assert bound <= found.cycles <= bound / 0.8


def test_a_wait_that_nobody_ends_is_reported() -> None:
    def body(group: Group) -> None:
        wait_kernel[(1,)](group.context, group.zeros(1, "int32"), 1, group.zeros(1, "int32"))

    with pytest.raises(RanksStuck):
        time_ranks(body, 2, CHIP)


def test_a_chip_without_a_link_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has no link"):
        time_ranks(sending(10), 2, load("single"))
    assert load("single").link is None
    assert isinstance(CHIP.link, Link)

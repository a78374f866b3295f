"""Allocating and freeing device memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    pattern,
    pieces,
    same_bytes,
    upload,
)
from triton_porting_kit.errors import InvalidArgument, InvalidPointer, OutOfMemory

CHECKS = Checks("runtime/memory", kit_device=True)

SIZES = (1, 2, 3, 7, 63, 64, 65, 255, 4095, 4096, 4097, 65_537, (1 << 20) + 1, (16 << 20) + 3)
ALIGNMENTS = (*(1 << k for k in range(13)), 65_536)


# --- sizes and alignment -----------------------------------------------------------------------------


def _holds(context: Context, size: int) -> None:
    device = context.device
    with allocated(device, size) as (address,):
        content = pattern(size)
        upload(device, address, content)
        same_bytes(context, f"{size} bytes", download(device, address, size), content)


for _size in SIZES:
    CHECKS.add(
        f"size-{_size}",
        f"An allocation of {_size} bytes holds every one of them.",
        partial(_holds, size=_size),
    )


def _aligned(context: Context, alignment: int) -> None:
    # Enough allocations that an allocator with a weaker alignment is unlikely to pass by chance.
    with allocated(
        context.device, 1, 3, 17, 100, 4097, *range(64, 1088, 64), alignment=alignment
    ) as addresses:
        off = [address % alignment for address in addresses]
        what = f"{len(addresses)} addresses are multiples of {alignment}"
        context.expect(not any(off), what, f"they are {off} off")


for _alignment in ALIGNMENTS:
    CHECKS.add(
        f"alignment-{_alignment}",
        f"An allocation that asks for an alignment of {_alignment} bytes has it, whatever its size.",
        partial(_aligned, alignment=_alignment),
    )


@CHECKS.check("alignment-default", "Memory allocated without an alignment is aligned to 64 bytes.")
def _default_alignment(context: Context) -> None:
    device = context.device
    addresses = [device.memalloc(size) for size in (1, 5, 333)]
    for address in addresses:
        device.memfree(address)
    context.expect(
        not any(a % 64 for a in addresses), "addresses are multiples of 64", f"{list(map(hex, addresses))}"
    )


def _bad_alignment(context: Context, alignment: int) -> None:
    context.refuses(
        f"memalloc(16, {alignment})", lambda: context.device.memalloc(16, alignment), InvalidArgument
    )


for _alignment in (0, 3, 48, -64):
    CHECKS.add(
        f"alignment-{_alignment}-refused",
        f"An alignment of {_alignment}, which is not a power of two, is refused with InvalidArgument.",
        partial(_bad_alignment, alignment=_alignment),
    )


@CHECKS.check("zero-size", "Allocations of 0 bytes have distinct addresses, and are freed like others.")
def _zero_size(context: Context) -> None:
    with allocated(context.device, 0, 0, 1, 0, 64) as addresses:
        context.expect(len({*addresses}) == 5, "five live addresses differ", str(addresses))
        context.expect(0 not in addresses, "no address is NULL", str(addresses))


@CHECKS.check("negative-size", "A negative size is refused with InvalidArgument.")
def _negative(context: Context) -> None:
    context.refuses("memalloc(-1)", lambda: context.device.memalloc(-1), InvalidArgument)


# --- several at a time -------------------------------------------------------------------------------


def _many(context: Context) -> list[tuple[int, int]]:
    """Make 200 allocations of random sizes, and return their addresses and sizes."""
    sizes = [int(size) for size in context.random.integers(0, 5000, 200)]
    return [(context.device.memalloc(size), size) for size in sizes]


def _free_all(context: Context, blocks: list[tuple[int, int]]) -> None:
    for address, _ in blocks:
        context.device.memfree(address)


@CHECKS.check("disjoint", "Live allocations do not overlap.")
def _disjoint(context: Context) -> None:
    blocks = _many(context)
    try:
        ordered = sorted(blocks)
        overlapping = [(a, b) for a, b in pairwise(ordered) if a[0] + max(a[1], 1) > b[0]]
        context.expect(not overlapping, "200 allocations lie apart", str(overlapping[:2]))
    finally:
        _free_all(context, blocks)


@CHECKS.check("independent", "Writing to one allocation does not change another.")
def _independent(context: Context) -> None:
    blocks, device = _many(context), context.device
    try:
        for salt, (address, size) in enumerate(blocks):
            upload(device, address, pattern(size, salt))
        found = np.concatenate([download(device, address, size) for address, size in blocks])
        wanted = np.concatenate([pattern(size, salt) for salt, (_, size) in enumerate(blocks)])
        same_bytes(context, "all of 200 allocations", found, wanted)
    finally:
        _free_all(context, blocks)


@CHECKS.check(
    "free-keeps-others", "Freeing allocations, and allocating again in their place, leaves the others alone."
)
def _free_keeps_others(context: Context) -> None:
    blocks, device = _many(context), context.device
    kept = blocks[1::2]
    for salt, (address, size) in enumerate(kept):
        upload(device, address, pattern(size, salt))
    _free_all(context, blocks[::2])
    fresh = _many(context)
    try:
        for address, size in fresh:
            upload(device, address, np.full(size, 0xEE, np.uint8))
        found = np.concatenate([download(device, address, size) for address, size in kept])
        wanted = np.concatenate([pattern(size, salt) for salt, (_, size) in enumerate(kept)])
        same_bytes(context, "the 100 that were not freed", found, wanted)
    finally:
        _free_all(context, kept + fresh)


_ORDERS: dict[str, Callable[[Context, list[Any]], list[Any]]] = {
    "first-to-last": lambda context, blocks: blocks,
    "last-to-first": lambda context, blocks: blocks[::-1],
    "random": lambda context, blocks: [blocks[k] for k in context.random.permutation(len(blocks))],
}


def _free_in_order(context: Context, order: str) -> None:
    for _ in range(3):
        blocks = _ORDERS[order](context, _many(context))
        _free_all(context, blocks)
        for address, _ in blocks[:: len(blocks) // 4]:
            context.refuses("freeing again", partial(context.device.memfree, address), InvalidPointer)


for _order in _ORDERS:
    CHECKS.add(
        f"free-{_order}",
        f"Allocations may be freed in {_order.replace('-', ' ')} order.",
        partial(_free_in_order, order=_order),
    )


# --- pointers that cannot be freed ---------------------------------------------------------------------


@CHECKS.check("free-null", "Freeing NULL is refused with InvalidPointer.")
def _free_null(context: Context) -> None:
    context.refuses("memfree(0)", lambda: context.device.memfree(0), InvalidPointer)


@CHECKS.check("double-free", "Freeing an address twice is refused with InvalidPointer.")
def _double_free(context: Context) -> None:
    device = context.device
    address = device.memalloc(100)
    device.memfree(address)
    context.refuses("the second memfree", lambda: device.memfree(address), InvalidPointer)


def _free_interior(context: Context, offset: int) -> None:
    device = context.device
    with allocated(device, 4096) as (address,):
        upload(device, address, pattern(4096))
        context.refuses(
            f"memfree(address + {offset})", lambda: device.memfree(address + offset), InvalidPointer
        )
        same_bytes(context, "its content", download(device, address, 4096), pattern(4096))


for _offset in (1, 8, 64, 4095, 4096):
    CHECKS.add(
        f"free-interior-{_offset}",
        f"Freeing an address {_offset} bytes into an allocation is refused with InvalidPointer, and the allocation "
        "lives on.",
        partial(_free_interior, offset=_offset),
    )


@CHECKS.check("free-host-address", "Freeing a host address is refused with InvalidPointer.")
def _free_host_address(context: Context) -> None:
    host = np.zeros(64, np.uint8)
    context.refuses("memfree", lambda: context.device.memfree(host.ctypes.data), InvalidPointer)


# --- exhaustion ----------------------------------------------------------------------------------------


def _too_much(context: Context, size: Callable[[int], int]) -> None:
    device = context.device
    wanted = size(device.properties().memory_bytes)
    context.refuses(f"memalloc({wanted})", lambda: device.memalloc(wanted), OutOfMemory)
    _holds(context, 1000)


for _name, _wanted in {
    "one-byte-more": lambda memory: memory + 1,
    "twice": lambda memory: 2 * memory,
    "exabyte": lambda memory: 1 << 60,
    "almost-2-to-63": lambda memory: (1 << 63) - 1,
}.items():
    CHECKS.add(
        f"too-much-{_name}",
        "An allocation that exceeds the device's memory is refused with OutOfMemory, and smaller ones still work.",
        partial(_too_much, size=_wanted),
    )


@CHECKS.check("2-to-64-bytes", "A size that does not fit into 64 bits is refused, and not truncated.")
def _beyond_64_bits(context: Context) -> None:
    for size in (1 << 64, (1 << 64) + 16):
        context.refuses(
            f"memalloc({size})",
            partial(context.device.memalloc, size),
            (OutOfMemory, InvalidArgument, OverflowError),
        )


def _exhaust(device: Any) -> tuple[list[int], int]:
    """Allocate sixteenths of the memory until it is exhausted. Returns the addresses and the size of each block.

    Blocks are smaller if the largest allocation is less than a sixteenth.
    """
    properties = device.properties()
    size = min(properties.memory_bytes // 16, properties.largest_allocation)
    blocks: list[int] = []
    try:
        while len(blocks) < 4 * properties.memory_bytes // size:
            blocks.append(device.memalloc(size))
    except OutOfMemory:
        pass
    return blocks, size


@CHECKS.check("exhaustion", "Once all memory is allocated, further allocations are refused with OutOfMemory.")
def _exhaustion(context: Context) -> None:
    device = context.device
    blocks, size = _exhaust(device)
    try:
        most = device.properties().memory_bytes // size
        context.expect(
            0 < len(blocks) <= most,
            f"at most {most} blocks of {size} bytes can be allocated, which are all of the memory",
            f"{len(blocks)} were",
        )
        context.refuses(f"memalloc({size})", lambda: device.memalloc(size), OutOfMemory)
    finally:
        for block in blocks:
            device.memfree(block)


@CHECKS.check("recovery", "After memory was exhausted, freed memory can be allocated again and works.")
def _recovery(context: Context) -> None:
    device = context.device
    blocks, size = _exhaust(device)
    try:
        context.expect(len(blocks) > 0, f"{size} bytes can be allocated")
        device.memfree(blocks.pop())
        blocks.append(device.memalloc(size))
        context.expect(True, "what was freed was allocated again")
    finally:
        for block in blocks:
            device.memfree(block)
    again, _ = _exhaust(device)
    for block in again:
        device.memfree(block)
    context.expect(
        len(again) >= len(blocks), "as much as before can be allocated", f"{len(again)} of {len(blocks)}"
    )
    _holds(context, 4097)


@CHECKS.check(
    "free-returns-memory", "Freed memory is available again: it can be allocated and freed repeatedly."
)
def _free_returns_memory(context: Context) -> None:
    device = context.device
    sizes = pieces(device, device.properties().memory_bytes // 8)
    for _ in range(40):
        with allocated(device, *sizes):
            pass
    context.expect(True, "five times the device's memory was allocated, an eighth at a time")


@CHECKS.check("churn", "10,000 allocations of mixed sizes, freed in mixed order, leave all memory free.")
def _churn(context: Context) -> None:
    device = context.device
    before, _ = _exhaust(device)
    for block in before:
        device.memfree(block)
    live: list[int] = []
    sizes = context.random.integers(0, 3000, 10_000)
    victims = context.random.integers(0, 1 << 30, 10_000)
    for size, victim in zip(sizes.tolist(), victims.tolist(), strict=True):
        live.append(device.memalloc(size))
        if len(live) > 100:
            device.memfree(live.pop(victim % len(live)))
    for address in live:
        device.memfree(address)
    after, _ = _exhaust(device)
    for block in after:
        device.memfree(block)
    context.expect(
        len(after) >= len(before), "as much memory is free as before", f"{len(after)} of {len(before)} blocks"
    )

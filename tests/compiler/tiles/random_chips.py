"""Descriptions of chips drawn at random: what memories there are, which ways lead between them, and what the units take.

The global memory and the vector unit's are always connected. The rest may be missing: a compiler takes another way, or
computes with the vector unit. ``python random_chips.py FOLDER NAME FIRST COUNT`` writes the chips of so many seeds, all by
one name, for a backend of that name and `tpk fuzz`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from triton_porting_kit.chips.description import Work

OPERANDS = (
    ("left", "right"),
    ("left", "left"),
    ("vector", "vector"),
    ("left", "vector"),
    ("vector", "right"),
)
"""Memories of the operands A and B."""
TYPES = ("fp16", "bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp32")
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PRODUCTS = (1, 2, 4, 8, 16, 32, 64)
"""Sizes of the matrix unit's tile in each dimension."""


def drawn(seed: int, name: str) -> str:
    """The TOML text of a chip."""
    draw = random.Random(seed)
    cores = draw.choice((1, 2, 3, 4, 5, 8))
    operands = draw.choice(OPERANDS) if draw.random() < 0.9 else ()
    sums = draw.choice(("sums", "sums", "vector")) if operands else ""
    local = sorted({"vector", *operands, sums, *(["shared"] if draw.random() < 0.5 else [])} - {""})
    of_cluster = draw.choice((True, False))  # the memory named shared
    lines = [
        f'name = "{name}"',
        f'title = "drawn with seed {seed}"',
        f"clock_mhz = {draw.choice((100, 1000, 1850))}",
        f"clusters = {draw.choice((1, 1, 2, 3))}",
        f"cores_per_cluster = {cores}",
        "launch_cycles = 1000",
        *_table("core", issue_cycles=draw.choice((0, 2, 20))),
        *_table("host", bytes_per_cycle=32, start_cycles=1000),
        *_table("link", bytes_per_cycle=64, latency=800, queue=draw.choice((1, 64))),
        *_memory(draw, "global", "chip", 1 << 33, alignment=1),
    ]
    for memory in local:
        size = draw.choice((8, 16, 64, 128)) << 10
        if memory == "vector":
            size = draw.choice((128, 256, 512, 1024)) << 10
        elif memory == "shared":
            size = draw.choice((128, 512, 1024)) << 10
        shared = memory == "shared" and of_cluster
        access = memory == "vector" or (memory in ("sums", "shared") and not shared and draw.random() < 0.5)
        scope = "cluster" if shared else "core"
        lines += _memory(draw, memory, scope, size * cores if shared else size, core_access=access)
    lines += _engines(draw, _routes(draw, local))
    lines += _table("vector", bytes=draw.choice((16, 64, 256, 1024)))
    lines += _table("vector.cycles", **{kind.value: draw.choice((0, 1, 1, 2, 0.5)) for kind in Work})
    if operands:
        lines += _matrix(draw, operands, sums)
    return "\n".join(lines) + "\n"


def _routes(draw: random.Random, local: Sequence[str]) -> list[str]:
    """Most of all ways, and always those between the global and the vector unit's memory."""
    memories = ["global", *local]
    likely = draw.choice((0.4, 0.7, 0.95))
    return [
        f"{source} -> {target}"
        for source in memories
        for target in memories
        if source != target and ({source, target} == {"global", "vector"} or draw.random() < likely)
    ]


def _engines(draw: random.Random, routes: Sequence[str]) -> Iterable[str]:
    """One engine, or one for each memory that is read. All of them move elements of four bytes."""
    sources = sorted({route.partition(" ")[0] for route in routes}) if draw.random() < 0.5 else [""]
    most = draw.choice((1, 2, 3, 5))
    for source in sources:
        gather = draw.random() < 0.5
        sizes = sorted({4, *(size for size in (1, 2, 8) if draw.random() < 0.7)})
        yield from _table(
            f"engine.{source or 'dma'}",
            channels=draw.choice((1, 2, 3)),
            routes=[route for route in routes if route.startswith(source)],
            dimensions=draw.randint(1, most),
            element_bytes=sizes,
            alignment=draw.choice(ALIGNMENTS),
            bytes_per_cycle=draw.choice((16, 128)),
            start_cycles=draw.choice((0, 24)),
            queue=draw.choice((1, 2, 16)),
            gather=gather,
            gather_cycles=int(gather),
        )


def _matrix(draw: random.Random, operands: Sequence[str], sums: str) -> Iterable[str]:
    yield from _table(
        "matrix",
        a=operands[0],
        b=operands[1],
        sums=sums,
        alignment=draw.choice(ALIGNMENTS),
        start_cycles=8,
        queue=draw.choice((1, 2, 16)),
        transposes=draw.random() < 0.5,
    )
    floats = [kind for kind in TYPES if draw.random() < 0.6] or ["fp16"]
    products = [(floats, "fp32")] if draw.random() < 0.8 else []
    if not products or draw.random() < 0.7:
        products.append((["i8", "u8"] if draw.random() < 0.5 else ["i8"], "i32"))
    for kinds, result in products:
        tile = [draw.choice(PRODUCTS) for _ in range(3)]
        yield from _table("[matrix.product]", a=kinds, sums=result, tile=tile, cycles=draw.choice((1, 8)))


def _memory(draw: random.Random, name: str, scope: str, size: int, **more: Any) -> Iterable[str]:
    values = {"alignment": draw.choice(ALIGNMENTS[4:]), **more}
    return _table(
        f"memory.{name}",
        scope=scope,
        bytes=size,
        banks=draw.choice((1, 4, 16)),
        bytes_per_cycle=512,
        latency=draw.choice((0, 4, 200)),
        burst_bytes=draw.choice((1, 32, 64)) if scope == "chip" else 1,
        **values,
    )


def _table(name: str, **values: object) -> Iterable[str]:
    yield f"\n[{name}]"
    for key, value in values.items():
        yield f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"


if __name__ == "__main__":
    folder, named, first, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for number in range(first, first + count):
        (folder / f"{number}.toml").write_text(drawn(number, named))

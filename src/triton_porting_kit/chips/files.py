"""Reading descriptions from TOML files, and those that come with the kit."""

from __future__ import annotations

import functools
from pathlib import Path

from triton_porting_kit.chips.description import (
    ChipDescription,
    Core,
    Engine,
    Host,
    Link,
    MatrixUnit,
    Memory,
    Product,
    Route,
    Scope,
    VectorUnit,
    Work,
)
from triton_porting_kit.chips.reading import Source, Table

CHIPS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
"""The files of the descriptions that come with the kit, by name."""

_SUMS = {"fp32": ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"), "i32": ("i8", "u8")}
"""The types of sums, and those of the operands of each."""
_MOST_CHANNELS = 16
_LARGEST_TEXT = 4000
"""Bytes of the text that the virtual NPU takes."""


@functools.cache
def load(name: str) -> ChipDescription:
    """The description of a name in `CHIPS`, or in the TOML file at a path.

    Raises `DescriptionError`, which names the line, and `OSError` if the file cannot be read.
    """
    path = CHIPS.get(name, Path(name))
    return parse(path.read_text(), str(path))


def parse(text: str, file: str = "<description>") -> ChipDescription:
    """The description in a TOML text. Raises `DescriptionError`."""
    source = Source(file, text)
    top = Table(source, source.values)
    chip = ChipDescription(
        name=top.word("name"),
        title=top.sentence("title"),
        clock_mhz=top.integer("clock_mhz", 1, 100_000),
        clusters=top.integer("clusters", 1, 256),
        cores_per_cluster=top.integer("cores_per_cluster", 1, 256),
        launch_cycles=top.integer("launch_cycles"),
        core=_core(top.required("core")),
        host=_host(top.required("host")),
        memories=tuple(_memory(name, table) for name, table in top.named("memory")),
        engines=tuple(_engine(name, table) for name, table in top.named("engine")),
        vector=_vector(top.required("vector")),
        matrix=_matrix(table) if (table := top.table("matrix")) else None,
        link=_link(table) if (table := top.table("link")) else None,
    )
    top.finish()
    _check(chip, top)
    return chip


def _core(table: Table) -> Core:
    core = Core(issue_cycles=table.integer("issue_cycles"))
    table.finish()
    return core


def _host(table: Table) -> Host:
    host = Host(table.integer("bytes_per_cycle", 1), table.integer("start_cycles"))
    table.finish()
    return host


def _link(table: Table) -> Link:
    link = Link(table.integer("bytes_per_cycle", 1), table.integer("latency"), table.integer("queue", 1))
    table.finish()
    return link


def _memory(name: str, table: Table) -> Memory:
    memory = Memory(
        name=name,
        scope=Scope(table.word("scope", tuple(scope.value for scope in Scope))),
        bytes=table.integer("bytes", 64),
        alignment=table.power("alignment"),
        banks=table.integer("banks", 1, default=1),
        bytes_per_cycle=table.integer("bytes_per_cycle", 1),
        latency=table.integer("latency"),
        core_access=table.flag("core_access"),
        burst_bytes=table.power("burst_bytes", 1),
    )
    if memory.core_access and memory.scope is not Scope.CORE:
        raise table.wrong("core_access", "is for memories of scope core")
    table.finish()
    return memory


def _engine(name: str, table: Table) -> Engine:
    engine = Engine(
        name=name,
        channels=table.integer("channels", 1, _MOST_CHANNELS),
        routes=tuple(_route(table, text) for text in table.items("routes", str, "routes")),
        dimensions=table.integer("dimensions", 1, 5),
        element_bytes=tuple(table.items("element_bytes", int, "sizes")),
        alignment=table.power("alignment"),
        bytes_per_cycle=table.integer("bytes_per_cycle", 1),
        start_cycles=table.integer("start_cycles"),
        queue=table.integer("queue", 1, 4096),
        gather=table.flag("gather"),
        gather_cycles=table.integer("gather_cycles", default=0),
    )
    if len(set(engine.element_bytes)) < len(engine.element_bytes) or not {*engine.element_bytes} <= {
        1,
        2,
        4,
        8,
    }:
        raise table.wrong("element_bytes", f"is {[*engine.element_bytes]}; elements have 1, 2, 4 or 8 bytes")
    table.finish()
    return engine


def _route(table: Table, text: str) -> Route:
    source, arrow, target = (part.strip() for part in text.partition("->"))
    if not (source and arrow and target):
        raise table.wrong("routes", f"has {text!r}; a route is written SOURCE -> TARGET")
    return Route(source, target)


def _vector(table: Table) -> VectorUnit:
    cycles = table.required("cycles")
    unit = VectorUnit(table.power("bytes"), {kind: cycles.number(kind.value) for kind in Work})
    cycles.finish()
    table.finish()
    return unit


def _matrix(table: Table) -> MatrixUnit:
    unit = MatrixUnit(
        a=table.word("a"),
        b=table.word("b"),
        sums=table.word("sums"),
        alignment=table.power("alignment"),
        start_cycles=table.integer("start_cycles"),
        queue=table.integer("queue", 1, 4096),
        transposes=table.flag("transposes"),
        products=tuple(_product(each) for each in table.listed("product")),
    )
    table.finish()
    return unit


def _product(table: Table) -> Product:
    operands = table.items("a", str, "element types")
    tile = table.items("tile", int, "sizes", 3)
    if min(tile) < 1:
        raise table.wrong("tile", f"is {tile}; sizes are above 0")
    sums = table.word("sums", (*_SUMS,))
    if wrong := [name for name in operands if name not in _SUMS[sums]]:
        raise table.wrong("a", f"has {wrong[0]!r}, whose products are not summed in {sums}")
    product = Product(tuple(operands), sums, (tile[0], tile[1], tile[2]), table.integer("cycles", 1))
    table.finish()
    return product


def _check(chip: ChipDescription, top: Table) -> None:
    """Raise for what is wrong between tables."""
    memories = {memory.name: memory for memory in chip.memories}
    chips = [memory.name for memory in chip.memories if memory.scope is Scope.CHIP]
    if len(chips) != 1:
        raise top.wrong("memory", f"has {len(chips)} memories of scope chip; there is one, the global memory")
    if not any(memory.core_access for memory in chip.memories):
        raise top.wrong("memory", "has none with core_access, in which the core could compute")
    for memory in chip.memories:
        if memory.scope is Scope.CLUSTER and memory.bytes % (chip.cores_per_cluster * memory.alignment):
            raise Table(top.source, {}, ("memory", memory.name)).wrong(
                "bytes",
                f"is {memory.bytes}; each of {chip.cores_per_cluster} cores gets an equal, aligned part",
            )
    for engine in chip.engines:
        for route in engine.routes:
            for name in (route.source, route.target):
                if name not in memories:
                    raise Table(top.source, {}, ("engine", engine.name)).wrong(
                        "routes", f"has '{route}', and there is no memory {name!r}"
                    )
    if matrix := chip.matrix:
        for key, name in (("a", matrix.a), ("b", matrix.b), ("sums", matrix.sums)):
            if name not in memories or memories[name].scope is Scope.CHIP:
                raise Table(top.source, {}, ("matrix",)).wrong(key, f"is {name!r}, which is no local memory")
    if len(chip.channels) > _MOST_CHANNELS:
        raise top.wrong("engine", f"has {len(chip.channels)} channels; a core has at most {_MOST_CHANNELS}")
    if (size := len(chip.text.encode())) > _LARGEST_TEXT:
        raise top.wrong(
            "name", f"begins a description of {size} bytes of text; at most {_LARGEST_TEXT} are allowed"
        )

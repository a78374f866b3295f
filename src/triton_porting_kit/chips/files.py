"""Reading descriptions from TOML files, and those that come with the kit."""

from __future__ import annotations

import functools
from dataclasses import fields
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
from triton_porting_kit.errors import DescriptionError

CHIPS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
"""The files of the descriptions that come with the kit, by name."""

SUMS = {"fp32": ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"), "i32": ("i8", "u8")}
"""The types of sums of the matrix unit, and those of the operands of each."""
MOST_CORES = 1024
MOST_MEMORIES = 32
MOST_CHANNELS = 16
MOST_LOCAL_BYTES = 1 << 44
"""Addresses of the local memories of all cores together: the virtual NPU reserves them in one process."""
LARGEST_TEXT = 4000
"""Bytes of the text that the virtual NPU takes."""


def load(name: str) -> ChipDescription:
    """The description of a name in `CHIPS`, or in the TOML file at a path.

    Raises `DescriptionError`, which names the line, and `OSError` if the file cannot be read.
    """
    path = CHIPS.get(name, Path(name))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DescriptionError(
            str(path), 0, f"it is not a TOML file, whose text is UTF-8 ({error})"
        ) from None
    return _parsed(text, str(path))


@functools.lru_cache(maxsize=64)
def _parsed(text: str, file: str) -> ChipDescription:
    """`parse`, once for each text: a file is read each time, because it may have changed."""
    return parse(text, file)


def parse(text: str, file: str = "<description>") -> ChipDescription:
    """The description in a TOML text. Raises `DescriptionError`."""
    source = Source(file, text)
    top = Table(source, source.values)
    top.only(("name", *_keys(ChipDescription, memories="memory", engines="engine")))
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
    _check(chip, top)
    return chip


def _keys(kind: type, **written: str) -> tuple[str, ...]:
    """The keys of a table: the fields of its type, under the names that they are written by. The name is no key."""
    return tuple(written.get(field.name, field.name) for field in fields(kind) if field.name != "name")


def _core(table: Table) -> Core:
    table.only(_keys(Core))
    return Core(issue_cycles=table.integer("issue_cycles"))


def _host(table: Table) -> Host:
    table.only(_keys(Host))
    return Host(table.integer("bytes_per_cycle", 1), table.integer("start_cycles"))


def _link(table: Table) -> Link:
    table.only(_keys(Link))
    return Link(table.integer("bytes_per_cycle", 1), table.integer("latency"), table.integer("queue", 1))


def _memory(name: str, table: Table) -> Memory:
    table.only(_keys(Memory))
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
    return memory


def _engine(name: str, table: Table) -> Engine:
    table.only(_keys(Engine))
    engine = Engine(
        name=name,
        channels=table.integer("channels", 1, MOST_CHANNELS),
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
    return engine


def _route(table: Table, text: str) -> Route:
    source, arrow, target = (part.strip() for part in text.partition("->"))
    if not (source and arrow and target):
        raise table.wrong("routes", f"has {text!r}; a route is written SOURCE -> TARGET")
    return Route(source, target)


def _vector(table: Table) -> VectorUnit:
    table.only(_keys(VectorUnit))
    cycles = table.required("cycles")
    cycles.only(kind.value for kind in Work)
    return VectorUnit(table.power("bytes"), {kind: cycles.number(kind.value) for kind in Work})


def _matrix(table: Table) -> MatrixUnit:
    table.only(_keys(MatrixUnit, products="product"))
    return MatrixUnit(
        a=table.word("a"),
        b=table.word("b"),
        sums=table.word("sums"),
        alignment=table.power("alignment"),
        start_cycles=table.integer("start_cycles"),
        queue=table.integer("queue", 1, 4096),
        transposes=table.flag("transposes"),
        products=tuple(_product(each) for each in table.listed("product")),
    )


def _product(table: Table) -> Product:
    table.only(_keys(Product, operands="a"))
    operands = table.items("a", str, "element types")
    tile = table.items("tile", int, "sizes", 3)
    if min(tile) < 1:
        raise table.wrong("tile", f"is {tile}; sizes are above 0")
    sums = table.word("sums", (*SUMS,))
    if wrong := [name for name in operands if name not in SUMS[sums]]:
        raise table.wrong(
            "a", f"has {wrong[0]!r}, whose products are not summed in {sums}; {', '.join(SUMS[sums])} are"
        )
    return Product(tuple(operands), sums, (tile[0], tile[1], tile[2]), table.integer("cycles", 1))


def _check(chip: ChipDescription, top: Table) -> None:
    """Raise for what is wrong between tables."""
    _check_memories(chip, top)
    memories = {memory.name: memory for memory in chip.memories}
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
    if chip.cores > MOST_CORES:
        raise top.wrong(
            "cores_per_cluster",
            f"is {chip.cores_per_cluster}, of {chip.clusters} clusters: {chip.cores} cores; "
            f"at most {MOST_CORES} are allowed",
        )
    if len(chip.channels) > MOST_CHANNELS:
        raise top.wrong("engine", f"has {len(chip.channels)} channels; a core has at most {MOST_CHANNELS}")
    if (size := len(chip.text.encode())) > LARGEST_TEXT:
        raise top.wrong(
            "name", f"begins a description of {size} bytes of text; at most {LARGEST_TEXT} are allowed"
        )


def _check_memories(chip: ChipDescription, top: Table) -> None:
    def wrong_bytes(memory: Memory, problem: str) -> DescriptionError:
        return Table(top.source, {}, ("memory", memory.name)).wrong("bytes", f"is {memory.bytes}; {problem}")

    chips = [memory.name for memory in chip.memories if memory.scope is Scope.CHIP]
    if len(chips) != 1:
        raise top.wrong("memory", f"has {len(chips)} memories of scope chip; there is one, the global memory")
    if not any(memory.core_access for memory in chip.memories):
        raise top.wrong("memory", "has none with core_access, in which the core could compute")
    if len(chip.memories) > MOST_MEMORIES:
        raise top.wrong("memory", f"has {len(chip.memories)} memories; a chip has at most {MOST_MEMORIES}")
    for memory in chip.memories:
        step = chip.cores_per_cluster * memory.alignment
        if memory.scope is Scope.CLUSTER and memory.bytes % step:
            below = memory.bytes // step * step
            sizes = " or ".join(str(size) for size in (below, below + step) if size)
            raise wrong_bytes(
                memory,
                f"each of {chip.cores_per_cluster} cores gets an equal part, a multiple of {memory.alignment} bytes: "
                f"write {sizes}",
            )
    if (size := chip.window_bytes * chip.cores) > MOST_LOCAL_BYTES:
        raise wrong_bytes(
            max(chip.local_memories, key=chip.local_bytes),
            f"the local memories of all {chip.cores} cores take {size} bytes of addresses; "
            f"at most {MOST_LOCAL_BYTES} are allowed",
        )

"""The function around a kernel's body: arguments, the loop over programs, and the symbols that the object file
exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_porting_kit.abi import block
from triton_porting_kit.abi import kernel as abi
from triton_porting_kit.compiler import loop_hints
from triton_porting_kit.compiler.dialect import Trait, having
from triton_porting_kit.compiler.dialect.npu import NpuPrograms
from triton_porting_kit.compiler.dialect.operations import ProgramId
from triton_porting_kit.compiler.loops.arithmetic.mode import Mode
from triton_porting_kit.compiler.loops.control.fused_stores import fused_stores
from triton_porting_kit.compiler.loops.handlers import HANDLERS
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.module_data import ModuleData
from triton_porting_kit.compiler.loops.ir.program import Block, Operation, Program, read_program, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import non_temporal
from triton_porting_kit.compiler.loops.memory.joined_stores import joined_stores
from triton_porting_kit.compiler.loops.memory.non_temporal import NonTemporal
from triton_porting_kit.compiler.loops.state import ATOMIC, LOADS, WRITES, Grid, Origins, Rules, program_ids
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import CompilationError, SourceLocation
from triton_porting_kit.on_demand import function

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.npu.core import Window

_TELLS = having(Trait.TELLS)

_source_lines = function("compiler.loops.ir.source_lines", "SourceLines")


class LoopsResult(NamedTuple):
    """The loops artefact: MLIR text, the kernel's symbol, and the scratch that each thread must provide.

    The first `cleared_bytes` of scratch must be zero when a thread runs its first programs of a launch.
    """

    text: str
    name: str
    scratch_bytes: int
    cleared_bytes: int
    places: list[SourceLocation | None]
    """The kernel line that each line of the text comes from, if requested."""
    promises: list[int]
    """What a launch must prove about its arguments and its grid: three numbers for each step of
    `abi.intervals`."""
    reaches: Mapping[Operation, int] | None = None
    """On a chip: how many bytes of scratch each operation uses. None where a part of scratch persists."""


def lower_to_loops(
    module: Any,
    target: CpuTarget,
    *,
    program: Program | None = None,
    fuse_multiply_add: bool = True,
    threads: int = 1,
    check_memory: bool = False,
    notes_program: bool = False,
    runs_alone: bool = False,
    with_places: bool = False,
    window: Window | None = None,
    work_items: int = 1,
) -> LoopsResult:
    """Lower a structured module to loops. `program` is the module's kernel, if it has been read already.

    The function has the signature ``i32 NAME(ptr args, ptr scratch, i64 begin, i64 end, i32 gx, i32 gy, i32 gz)`` and
    runs the programs [begin, end) of the grid. It prints a scalar `threads` times, as that many threads of a GPU would.
    With `check_memory`, the bounds of pointer arguments follow the arguments, and no access leaves them (see
    `checking`). With `notes_program`, scratch holds the number of the running program. With `runs_alone`, atomic
    operations have code without locks for calls during which no other thread updates memory (see `exclusive`).
    `with_places` records source lines and does not change the code. With `window`, ``scratch`` is the base of a core's
    local memories, and the result's `scratch_bytes` are those behind `window.scratch`. With more than one of
    `work_items`, loops over points of a tile are marked for `simt`.

    Raises `CompilationError` for what it cannot lower.
    """
    program = program or read_program(module)
    builder = LoopBuilder(
        converts_f16=target.converts_f16,
        lookup_lanes=target.lookup_lanes,
        lookup_bytes=target.lookup_bytes,
    )
    args, scratch, begin, end, *counts = (
        Value(name, type, 0)
        for name, type in (
            ("%args", "!llvm.ptr"), ("%scratch", "!llvm.ptr"), ("%begin", "i64"), ("%end", "i64"),
            ("%grid_x", "i32"), ("%grid_y", "i32"), ("%grid_z", "i32"),
        )
    )  # fmt: skip
    data = ModuleData(builder)
    mode = Mode.of(target, data, fuse_multiply_add=fuse_multiply_add)
    own = scratch if window is None else builder.address(scratch, [builder.i64(window.scratch)], "i8")
    rules = Rules(HANDLERS, fused_stores, joined_stores)
    lowering = Lowering(builder, target, mode, rules, own, Grid(counts, threads=threads))
    if window is not None:
        _begin_on_chip(lowering, window, (begin, end))
    lowering.work_items, builder.marks_points = work_items, work_items > 1
    lowering.source_lines = _source_lines(builder) if with_places else None
    # Only a kernel that accesses memory can crash.
    notes_program = notes_program and any(op.name in LOADS or op.name in WRITES for op in walk(program.body))
    note = lowering.scratch.keep(types.byte_size("i64")) if notes_program else None
    told = _tell_when_alone(lowering, program.body, wanted=runs_alone)
    lowering.part(NonTemporal).allowed = non_temporal.allowed(lowering, program.body)
    pointers = _read_arguments(builder, lowering, program, args, check_memory=check_memory)
    counted = counts if check_memory else counts[: _axes(program)]
    lowering.grid.tells = len(counted) == len(counts)
    if any(NpuPrograms.isa(operation) for operation in program.body.operations):
        lowering.block(program.body)
        _end(builder)
    else:
        _run_programs(lowering, program, begin, end, counted, note)
    _check_name(program.name, lowering.data)
    cleared_bytes, scratch_bytes = lowering.scratch.cleared.size, lowering.scratch.size
    numbers = {}
    if lowering.checks is not None:
        numbers[abi.ARGUMENT_BYTES] = lowering.checks.argument_bytes
    if note is not None:  # the kept part is last in scratch, and this is its first entry
        numbers[abi.PROGRAM] = scratch_bytes - lowering.scratch.kept.size
    exported_bytes = scratch_bytes if window is None else window.bytes
    if window is not None:
        assert not cleared_bytes, "nobody clears local memory"
        numbers[window.symbol] = window.symbol_value
    numbers |= told
    text = _module_text(
        program.name,
        "%cleared" if cleared_bytes else "%scratch",
        [*_parts_of_scratch(lowering, 0 if window is None else window.scratch), *builder.text()],
        [*lowering.data.lines(), *_numbers(program.name, numbers)],
        [exported_bytes, cleared_bytes],
        pointers,
        lowering.source_comments.lines(),
        has_loop_hints=lowering.data.has_loop_hints,
    )
    places = [] if lowering.source_lines is None else lowering.source_lines.lines(text)
    reaches = None if lowering.scratch.kept.size else lowering.scratch.reaches
    return LoopsResult(text, program.name, scratch_bytes, cleared_bytes, places, program.promises, reaches)


def _check_name(name: str, data: ModuleData) -> None:
    if name in {*data.names(), abi.VERSION_SYMBOL}:
        raise CompilationError(
            f"the kernel {name!r} has the name of a function or of data that its own code uses",
            remedy="give the kernel another name: one that does not begin with tpk_",
        )


def _run_programs(
    lowering: Lowering, program: Program, begin: Value, end: Value, counts: list[Value], note: Value | None
) -> None:
    """The loop over the programs [begin, end) of a grid with these `counts`.

    It writes each program's number to `note`.
    """
    builder = lowering.builder
    with builder.loop(begin, end, builder.i64(1), program_ids(builder, begin, counts)) as region:
        lowering.grid.program_ids = region.arguments
        if note is not None:  # read by the signal handler
            builder.effect(f"llvm.store volatile {region.induction.name}, {note.name} : i64, !llvm.ptr")
        lowering.block(program.body)
        region.yields = _next_program(builder, region.arguments, counts)
    if lowering.part(NonTemporal).used:
        builder.line(non_temporal.FENCE)
    _end(builder)


def _end(builder: LoopBuilder) -> None:
    status = builder.constant(0, "i32")
    builder.line(f"llvm.return {status.name} : i32")


def _numbers(name: str, numbers: dict[str, int]) -> list[str]:
    """Further constants that the object exports about the kernel, by symbol suffix."""
    return [
        f"llvm.mlir.global external constant @{name}{suffix}({number} : i64) : i64"
        for suffix, number in numbers.items()
    ]


def _parts_of_scratch(lowering: Lowering, start: int) -> list[str]:
    """The start of each part of a thread's scratch block. The sizes are known only now.

    The cleared part comes first, then the stack that each program uses anew, then the part that persists. The stack is
    `start` bytes behind the address that the kernel is given.
    """
    lines = []
    if lowering.scratch.cleared.size:
        lines.append(_beyond("%scratch", lowering.scratch.cleared.start.name, lowering.scratch.cleared.size))
    if lowering.scratch.kept.size:
        lines.append(
            _beyond(lowering.scratch.kept.start.name, "%scratch", start + lowering.scratch.stack.high_water)
        )
    return lines


def _beyond(name: str, base: str, offset: int) -> str:
    return f"{name} = llvm.getelementptr {base}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8"


def _begin_on_chip(lowering: Lowering, window: Window, programs: tuple[Value, Value]) -> None:
    """Tell the lowering of the local memories, and of the programs to run."""
    from triton_porting_kit.compiler.loops.npu.core import Core  # a CPU does without

    lowering.reclaim = lowering.target.caches.l2 // 16
    lowering.builder.names_functions = True
    lowering.part(Core).bases = window.bases
    lowering.part(Core).programs = programs
    lowering.scratch.reaches = {}


def _tell_when_alone(lowering: Lowering, body: Block, *, wanted: bool) -> dict[str, int]:
    """Constants for the host, if other threads' updates without locks could disturb the kernel: see `exclusive`."""
    if not any(operation.name in ATOMIC or operation.is_volatile for operation in walk(body)):
        return {}
    from triton_porting_kit.compiler.loops.memory import exclusive  # few kernels need it

    return exclusive.prepare(lowering, body, wanted=wanted)


def _read_arguments(
    builder: LoopBuilder, lowering: Lowering, program: Program, args: Value, *, check_memory: bool
) -> list[int]:
    """Reads the argument block. Returns the offsets in bytes of pointer arguments."""
    pointers: list[int] = []
    named: list[tuple[str, Value]] = []
    arguments = program.body.arguments
    offsets, end = block.offsets(types.byte_size(definition.type.element) for definition in arguments)
    for definition, name, offset in zip(arguments, program.argument_names, offsets, strict=True):
        builder.comment(f"parameter {name}")
        element = definition.type.element
        place = builder.address(args, [builder.i64(offset)], "i8")
        value = lane_memory.read(builder, place, element, 1, floor=0)
        lowering.scalars[definition] = value
        if element == "!llvm.ptr":
            lowering.part(Origins)[value.name] = value
            pointers.append(offset)
            named.append((name, value))
            if lowering.target.has_flat_memory and not lowering.target.masks_gathers:
                builder.readable = args  # the block holds a pointer at least
    if check_memory:
        from triton_porting_kit.compiler.loops.memory.checking import BOUNDS_ALIGNMENT, Checks

        lowering.uses.checked = True
        lowering.checks = Checks(lowering, named, args, block.round_up(end, BOUNDS_ALIGNMENT))
    return pointers


def _axes(program: Program) -> int:
    """How many axes of the program id are needed: up to the last axis that the kernel reads."""
    axes = 0
    for operation in walk(program.body):
        if (position := ProgramId.dyn_cast(operation)) is not None:
            axes = max(axes, position.axis + 1)
        elif operation.name in _TELLS:
            return 3
    return axes


def _next_program(builder: LoopBuilder, ids: list[Value], counts: list[Value]) -> list[Value]:
    """Increment the program id by one, x fastest."""
    one, zero = builder.constant(1, "i32"), builder.constant(0, "i32")
    carry = builder.constant(1, "i1")
    following = []
    for index, count in zip(ids, counts, strict=True):
        more = builder.select(carry, builder.add(index, one), index)
        carry = builder.compare("eq", more, count)
        following.append(builder.select(carry, zero, more))
    return following


def _module_text(
    name: str,
    scratch: str,
    body: list[str],
    data: list[str],
    scratch_bytes: list[int],
    pointers: list[int],
    comments: list[str],
    *,
    has_loop_hints: bool,
) -> str:
    table = [len(pointers), *pointers]
    lines = [
        f"module attributes {{{loop_hints.FLAG}}} {{" if has_loop_hints else "module {",
        *(f"  {line}" for line in comments),
        f"  llvm.mlir.global external constant @{name}{abi.SCRATCH}(dense<{scratch_bytes}> : "
        f"tensor<{len(scratch_bytes)}xi64>) : !llvm.array<{len(scratch_bytes)} x i64>",
        f"  llvm.mlir.global external constant @{name}{abi.POINTERS}(dense<{table}> : "
        f"tensor<{len(table)}xi32>) : !llvm.array<{len(table)} x i32>",
        f"  llvm.mlir.global external constant @{abi.VERSION_SYMBOL}({abi.VERSION} : i32) : i32",
        *(f"  {line}" for line in data),
        f"  llvm.func @{name}(%args: !llvm.ptr, {scratch}: !llvm.ptr, %begin: i64, %end: i64, "
        "%grid_x: i32, %grid_y: i32, %grid_z: i32) -> i32 {",
        *(f"    {line}" for line in body),
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"

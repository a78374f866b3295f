"""The lowering of one kernel: which tensors are computed where, and the order of effects.

Operations are lowered in program order. Scalars are emitted at once. Element-wise tensors are only recorded; they are
computed inside the loop of their consumer: a store, a reduction, a dot, or a loop that carries them. Three rules keep
the order of effects as in the program:

- Before an operation that writes memory, loads that are still needed after it are read into scratch.
- Before a region that may run many times, values that it uses from outside are kept in scratch if they are expensive or
  read memory.
- An expensive value with several consumers is kept in scratch when the first of them computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from triton_porting_kit.compiler.loops.arithmetic.mode import Mode
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.module_data import ModuleData
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation, last_user, walk
from triton_porting_kit.compiler.loops.ir.source_comments import SourceComments
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.state import (
    DEFERRED,
    MOVABLE,
    SILENT,
    AccessChecks,
    FusedStores,
    Grid,
    OpenBlock,
    Rules,
    Uses,
    is_fence,
)
from triton_porting_kit.compiler.loops.tiles.access import NOWHERE, Access
from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.graph import buffers_of, cost, kept_instead, reads_memory, unread
from triton_porting_kit.compiler.loops.tiles.nests import changes_where, emit_tile, is_run, transpose_into
from triton_porting_kit.compiler.loops.tiles.peeling import Streams
from triton_porting_kit.compiler.loops.tiles.run_width import run_width
from triton_porting_kit.compiler.loops.tiles.scratch import Scratch
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Point, Splat, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.transposed import gathers_for_all, lies_across
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import PortingKitError

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.source_lines import SourceLines

DEEPEST = 100
"""A tensor with a longer chain of operands is kept in scratch, which bounds the recursion of evaluation."""

RECLAIM = 1 << 20
"""A block that holds so many bytes of scratch reuses what it needs no more; on a chip, a part of its memory."""

ADVANCED = 64
"""Most operations to lower early for one value."""

T = TypeVar("T")


class Lowering:
    """State of lowering one kernel body.

    State that belongs to one part of the lowering is a `part`, of that part's own type.
    """

    def __init__(
        self, builder: LoopBuilder, target: CpuTarget, mode: Mode, rules: Rules, scratch: Value, grid: Grid
    ) -> None:
        self.builder = builder
        self.target = target
        self.mode = mode
        self.grid = grid
        self.scratch = Scratch(builder, scratch)
        self.reclaim, self.work_items = RECLAIM, 1  # loops over points of a tile are for so many (see `simt`)
        self.source_comments = SourceComments()
        self.source_lines: SourceLines | None = None  # of the kernel, if they are recorded
        self.scalars: dict[Def, Value] = {}
        self.tensors: dict[Def, Tensor] = {}
        self.checks: AccessChecks | None = None  # set in checked mode
        self.uses = Uses()
        self.fused: FusedStores | None = None
        """While a store is lowered: the loop-carried values that its loop computes for the next iteration."""
        self.joined: list[Operation] = []
        """While a store is lowered: the stores that follow and are done in its loop."""
        self.done: set[Operation] = set()
        """Operations that were lowered early, together with another one."""
        self._rules = rules
        self._parts: dict[type[Any], Any] = {}
        self._pending: list[Tensor] = []
        self._filled: Tensor | None = None  # what is being written to scratch
        self._open = OpenBlock()

    @property
    def data(self) -> ModuleData:
        """Constant data and declarations of the kernel's module."""
        assert self.mode.data is not None
        return self.mode.data

    def part(self, cls: type[T]) -> T:
        """The state of one part of the lowering, created on first use."""
        found = self._parts.get(cls)
        if found is None:
            found = self._parts[cls] = cls()
        return cast(T, found)

    # --- program order ---------------------------------------------------------------------------

    def block(self, block: Block, finish: Callable[[], None] | None = None) -> None:
        """Lower the operations of a block in order, call `finish`, then free the scratch that they have allocated."""
        outer, self._open = self._open, OpenBlock(block)
        stack, reaches = self.scratch.stack, self.scratch.reaches
        mark, holes = stack.mark, stack.set_holes_aside()
        for operation in block.operations:
            if operation in self.done:
                continue
            self.operation(operation)
            if reaches is not None:
                reaches[operation] = stack.reached()
            if stack.mark - mark >= self.reclaim and operation is not block.operations[-1]:
                self._reclaim(operation, mark)
        if finish is not None:
            finish()
        self._open = outer
        stack.release(mark)
        stack.put_back(holes)

    def _reclaim(self, operation: Operation, mark: int) -> None:
        """Free the scratch that the current block has allocated and will not read after `operation`."""
        # A tensor whose users all come before this operation is only needed if a tensor that is still needed reads it.
        self._open.alive = [d for d in self._open.alive if last_user(d) > operation.position]
        used = buffers_of(self.tensors[definition] for definition in self._open.alive)
        for offset in self.scratch.stack.taken(mark):
            if self.scratch.place(offset) not in used:
                self.scratch.stack.give_back(offset)

    def operation(self, operation: Operation) -> None:
        """Lower one operation."""
        handler = self._rules.handlers.get(operation.name)
        if handler is None:
            raise operation.unsupported(
                f"the CPU backend has no lowering for {operation.name}",
                "express this line with other operations of triton.language",
            )
        try:
            if is_fence(operation) or any(map(is_fence, chain(*map(walk, operation.regions)))):
                self.fused = self._rules.fused_stores(self, operation)
                self.joined = self._rules.joined_stores(self, operation)
                self.settle_before(operation)
            if operation.name not in DEFERRED and operation.name not in SILENT:
                self.builder.comment(self.source_comments.of(operation))
            with self.place_of(operation):
                handler(self, operation)
            self.fused, self.joined = None, []
        except PortingKitError:
            raise
        except Exception as error:  # a defect, but one to report with its kernel line
            raise operation.unsupported(
                f"the lowering of {operation.name} failed with {type(error).__name__}: {error}",
                "this is a defect of the CPU backend: please report the kernel",
            ) from error

    def place_of(self, operation: Operation) -> AbstractContextManager[None]:
        """A context in which emitted lines get the source line of `operation`; see `source_lines`."""
        return NOWHERE if self.source_lines is None else self.source_lines.of(operation)

    def advance(self, definition: Def) -> bool:
        """Record a value of this block early, if it is element-wise. Returns whether it is known now."""
        waiting: dict[Operation, None] = {}
        stack = [definition]
        while stack:
            current = stack.pop()
            if current in self.tensors or current in self.scalars:
                continue
            owner = current.owner
            if owner is None or owner.block is not self._open.block or owner.name not in MOVABLE:
                return False
            waiting[owner] = None
            if len(waiting) > ADVANCED:
                return False
            stack += owner.operands
        for operation in sorted(waiting, key=lambda operation: operation.position):
            self.operation(operation)
            self.done.add(operation)
        return True

    def scalar(self, definition: Def) -> Value:
        return self.scalars[definition]

    def tensor(self, definition: Def) -> Tensor:
        """The tensor of a value. A scalar is a rank-0 tensor."""
        known = self.tensors.get(definition)
        return known if known is not None else Splat((), self.scalars[definition], definition.type.element)

    def define(self, definition: Def, tensor: Tensor) -> None:
        """Record the tensor of a value."""
        tensor.definition = tensor.definition or definition
        if isinstance(tensor, LoadTensor | Gather):
            self._pending.append(tensor)
        self.tensors[definition] = tensor
        if definition.block is self._open.block:
            self._open.alive.append(definition)
        if tensor.depth > DEEPEST:
            self.materialise(tensor)

    # --- consumers of a value --------------------------------------------------------------------

    def needed_after(self, tensor: Tensor, operation: Operation) -> bool:
        """Whether a later operation in the same block will evaluate the tensor."""
        definition = tensor.definition
        if definition is None or definition.block is not operation.block:
            return False
        later = [root for root in self.uses.roots(definition) if root.position > operation.position]
        if self.fused is not None and tensor not in self.fused.rest:
            later = [root for root in later if root is not self.fused.terminator]
        return any(root not in self.joined for root in later)

    def pending_in(self, block: Block) -> list[Tensor]:
        """The tensors loaded in a block and not read yet."""
        return [t for t in self._pending if t.buffer is None and t.definition and t.definition.block is block]

    def settle_before(self, operation: Operation) -> None:
        """Read what was loaded before this operation, which writes memory, and is needed after it."""
        still = []
        for tensor in self._pending:
            if tensor.buffer is not None or tensor.definition is None:
                continue
            if tensor.definition.block is not operation.block:
                still.append(tensor)
            elif self.needed_after(tensor, operation):
                self.materialise(tensor, operation)
        self._pending = still

    # --- scratch ---------------------------------------------------------------------------------

    def materialise(self, tensor: Tensor, operation: Operation | None = None) -> Buffer:
        """Compute every element of `tensor` into scratch here, contiguously. Later uses in this block read it there."""
        held = tensor.buffer or tensor
        if isinstance(held, Buffer) and held.is_dense:
            return held
        buffer = self.scratch.allocate(tensor.shape, tensor.element)
        self.fill(operation, buffer, tensor)
        if tensor.definition is None or tensor.definition.block is self._open.block:
            # Not for a value of an outer block: this region may not run, and its scratch is reused after it.
            self.hold(tensor, buffer)
        return buffer

    def hold(self, tensor: Tensor, buffer: Buffer) -> None:
        """Read `tensor` from `buffer` until the innermost region, which has written the buffer, is closed."""
        before, tensor.buffer = tensor.buffer, buffer

        def forget() -> None:
            tensor.buffer = before
            if before is None:
                self.uses.reopen(tensor.definition)

        self.builder.at_end(forget)

    def fill(self, operation: Operation | None, buffer: Buffer, tensor: Tensor) -> None:
        """Write every element of `tensor` into `buffer`."""
        if lies_across(tensor, self.target):
            transpose_into(self.builder, self.target, tensor, buffer)
            return

        def body(evaluation: Evaluation, point: Point) -> None:
            buffer.write(self.builder, point, evaluation.at(tensor, point))

        before, self._filled = self._filled, tensor
        widest = max(types.byte_size(part.element) for part in (tensor, *closure([tensor])))
        lanes = max(self.target.lanes, self.target.vector_bytes // widest)
        lanes = min(run_width(self.builder, tensor.shape, [tensor], lanes, scalars=False), buffer.most_lanes)
        anywhere = all(buffer.joins(dimension) is not None for dimension in range(len(tensor.shape) - 1))
        wanted = changes_where(tensor, buffer)
        self.tile(operation, tensor.shape, [tensor], body, lanes=lanes, anywhere=anywhere, wanted=wanted)
        self._filled = before

    # --- loops over a tile -----------------------------------------------------------------------

    def tile(
        self,
        operation: Operation | None,
        shape: tuple[int, ...],
        inputs: Iterable[Tensor],
        body: Callable[[Evaluation, Point], None],
        *,
        written: Sequence[Access] = (),
        lanes: int | None = None,
        anywhere: bool = False,
        everywhere: bool = False,
        streams: Streams | None = None,
        scalars: bool = False,
        wanted: Tensor | None = None,
    ) -> None:
        """Emit loops over a tile in which `body` evaluates `inputs` at each point and consumes them.

        `written`: accesses that `body` stores to. Common bounds restrict the loops, unless `everywhere`. `anywhere`:
        the body only passes its point to tensors, which may be indexed with joined dimensions (see `Tensor.joins`).
        `streams`: stores that may be non-temporal. `scalars`: the body has use for scalars only, where all elements of
        a chunk are equal. `wanted`: a mask; where it is not set, `body` need not be called.
        """
        inputs = list(inputs)
        kept = self.plan(operation, shape, inputs)
        emit_tile(
            self.builder,
            self.target,
            shape,
            inputs,
            body,
            kept,
            written=written,
            lanes=lanes,
            anywhere=anywhere,
            everywhere=everywhere,
            streams=streams,
            scalars=scalars,
            wanted=wanted,
        )
        for tensor, buffer in kept.items():
            self.hold(tensor, buffer)

    def element(self, tensor: Tensor, indices: list[Value], operation: Operation) -> Value:
        """One element of a tensor as a scalar, read here."""
        self.plan(operation, (), [tensor])
        self.builder.forget_reads()
        wide = tuple(self.builder.cast("arith.index_cast", index, "i64") for index in indices)
        value = Evaluation(self.builder, frozenset(), {}).at(tensor, Point(wide, -1, 1))
        self.builder.forget_reads()
        return value

    def settle_reads(self, tensor: Tensor, operation: Operation) -> None:
        """Read everything that evaluating `tensor` loads from global memory now, into scratch."""
        for part in unread(tensor):
            self.materialise(part, operation)

    def plan(
        self, operation: Operation | None, shape: tuple[int, ...], inputs: Iterable[Tensor]
    ) -> dict[Tensor, Buffer]:
        """Decide what to keep in scratch before or while `operation` evaluates `inputs` over `shape`.

        Values that are evaluated at the loop's own points are returned with the buffers to write them to. The others
        are computed here, in loops of their own.
        """
        kept: dict[Tensor, Buffer] = {}
        costs: dict[Tensor, int] = {}
        seen: set[tuple[Tensor, bool]] = set()

        def visit(tensor: Tensor, aligned: bool, repeated: bool) -> None:
            if tensor.buffer is not None or isinstance(tensor, Buffer) or (tensor, aligned) in seen:
                return
            seen.add((tensor, aligned))
            if aligned and isinstance(tensor, LoadTensor) and lies_across(tensor, self.target):
                self.materialise(tensor, operation)  # in transposed blocks, where the loop would gather
                return
            if cost(tensor, costs) >= EXPENSIVE and not is_run(self.builder, self.target, tensor):
                user = operation if tensor is not self._filled else None
                again = user is not None and self.needed_after(tensor, user)
                if user is not None and again and aligned and tensor.shape == shape:
                    kept[tensor] = self.scratch.allocate(tensor.shape, tensor.element)
                    self.uses.end(tensor.definition if shape else None, user)
                    # Its operands are evaluated in this loop all the same, but not again after it.
                elif (again or repeated) and tensor.shape:
                    self.materialise(tensor, operation)
                    return
            for index, operand in enumerate(tensor.operands):
                dimensions = tensor.operand_dimensions(index)
                if dimensions == list(range(len(tensor.shape))) or tensor.stays_in_chunk:
                    visit(operand, aligned, repeated)
                elif gathers_for_all(tensor, index):
                    self.materialise(operand, operation)
                else:
                    visit(operand, False, repeated or tensor.spreads(index))

        for tensor in inputs:
            visit(tensor, tensor.shape == shape, False)
        # A value that is also evaluated at other points has been materialised above, and is read from scratch.
        return {tensor: buffer for tensor, buffer in kept.items() if tensor.buffer is None}

    def enter_region(self, operation: Operation) -> None:
        """Keep what a region uses from outside and would otherwise recompute in every iteration."""
        costs: dict[Tensor, int] = {}

        def is_kept(tensor: Tensor) -> bool:
            expensive = cost(tensor, costs) >= EXPENSIVE and not is_run(self.builder, self.target, tensor)
            return expensive or reads_memory(tensor)

        for inner in (inner for region in operation.regions for inner in walk(region)):
            for tensor in filter(None, map(self.tensors.get, inner.operands)):
                if not isinstance(tensor, Buffer) and tensor.buffer is None and is_kept(tensor):
                    for part in kept_instead(tensor, self._open.block, is_kept):
                        self.materialise(part, operation)
                    costs.clear()  # what is kept costs less

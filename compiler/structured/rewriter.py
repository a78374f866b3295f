"""The state of rewriting one function, and the forms of pointers that it emits.

Rewriting inserts upstream operations beside Triton's and records the replacements. Only at the end are uses redirected,
types changed and Triton's operations erased. Until then, the analysis sees the original function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from triton_porting_kit.abi.intervals import Step, needed
from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Pointer, Promise
from .analysis import CARRIERS, Analysis
from .carried import CarriedValues
from .depth import Depth, made_of
from .diagnostics import fail
from .emit import Emitter
from .masks import MaskAnalysis, Rest
from .poly import ZERO, Poly
from .types import Types

_POINTER_MOVES = ("tt.addptr", "tt.bitcast", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape")


class Rewriter:
    """Rewrites one function, whose entry block is `entry`."""

    def __init__(self, types: Types, entry: Any, *, promises: bool = False) -> None:
        """With `promises`, the launch verifies assumptions that depend only on its arguments and grid."""
        self.types = types
        self.entry = entry
        self.analysis = Analysis(types, promises=promises)
        self.carried = CarriedValues(self.analysis)
        self.masks = MaskAnalysis(self.analysis)
        self.emitter = Emitter(types, self.analysis, entry)
        self.replaced: list[tuple[Any, Any, Any]] = []
        self.dead: list[Any] = []
        self.edits: list[Callable[[], None]] = []
        self._depth = Depth()
        self._offsets: dict[Any, tuple[Any, Poly, Any]] = {}
        self._promised: dict[int, None] = {}
        """Steps of `Ranges` that the launch must verify to fit 32 bits."""

    def to_look_at(self, assumed: Iterable[Affine | Promise]) -> list[Affine]:
        """The assumptions that the kernel itself must check; promises among them are recorded for the launch."""
        found = []
        for part in assumed:
            if isinstance(part, Promise):
                self._promised[part.step] = None
            else:
                found.append(part)
        return found

    def launch_steps(self) -> list[Step]:
        """The steps that the launch must evaluate, for `abi.intervals`."""
        return needed(self.analysis.ranges.steps, list(self._promised))

    def replace(self, operation: Any, *values: Any) -> None:
        """Replace the results of `operation` with `values`, and erase it at the end."""
        self.replaced.extend((old, new, None) for old, new in zip(operation.results, values, strict=True))
        self.dead.append(operation)

    def finish(self) -> None:
        """Redirect uses, change types, and erase what was replaced."""
        for edit in self.edits:
            edit()
        # The last first: a replacement may itself have been replaced earlier.
        for old, new, reader in reversed(self.replaced):
            if reader is None:
                old.replace_all_uses_with(new)
            else:
                old.replace_all_uses_except(new, reader)
        for operation in reversed(self.dead):
            for result in operation.results:
                for use in result.uses:  # MLIR aborts the process if an operation with uses is erased
                    fail(
                        use.owner,
                        f"`{use.owner.name}` cannot take the result of `{operation.operation.name}`",
                        "express this part of the kernel with other operations of triton.language",
                    )
            operation.operation.erase()

    # --- pointers --------------------------------------------------------------------------------

    def offsets(self, value: Any) -> tuple[Any, Poly, Any]:
        """A tensor of pointers as (base, uniform offset, tensor of offsets), offsets in elements.

        Without a base: (None, 0, tensor of i64 byte addresses). The tensor is created where `value` is defined.
        """
        found = self._offsets.get(value)
        if found is None:
            with self._depth.deeper() as far:
                for inner in made_of(value, self._sources, self._offsets) if far else ():
                    self.offsets(inner)
                found = self._offsets[value] = self._make_offsets(value)
        return found

    def _sources(self, value: Any) -> list[Any]:
        """The tensor of pointers from which the `offsets` of `value` are derived."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in _POINTER_MOVES:
            return []
        if _is_known(self.analysis.pointer(value)):
            return []
        source = owner.operands[0]
        return [source] if self.types.info(source).shape is not None else []

    def _make_offsets(self, value: Any) -> tuple[Any, Poly, Any]:
        pointer = self.analysis.pointer(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._block_argument_offsets(value, pointer)
        outer = self.emitter.at, self.emitter.location
        self.emitter.before(owner)
        try:
            return self._result_offsets(value, owner, pointer)
        finally:
            self.emitter.at, self.emitter.location = outer

    def _block_argument_offsets(self, value: Any, pointer: Pointer) -> tuple[Any, Poly, Any]:
        if pointer.index is None:
            return self._carried_offsets(value, pointer)
        outer = self.emitter.at, self.emitter.location
        for identifier in self.analysis.scalars.leaves(pointer.index.scalars):
            self.emitter.scalar(identifier)  # also defined at the start of the block, so it must come first
        self.emitter.at, self.emitter.location = self._begin(value), value.location
        try:
            return self._affine_offsets(value, pointer.base, pointer.index)
        finally:
            self.emitter.at, self.emitter.location = outer

    def _begin(self, argument: Any) -> Any:
        """The first insertion point of a block that follows the argument's reader, if there is one."""
        reader = self.emitter.readers.get(argument)
        if reader is not None:
            return ir.InsertionPoint.after(reader)
        return ir.InsertionPoint.at_block_begin(argument.owner)

    def _carried_offsets(self, value: Any, pointer: Pointer) -> tuple[Any, Poly, Any]:
        """The offsets of a value that will become the tensor of offsets or addresses, or how far it was moved."""
        if (moved := self.carried.moved.get(value)) is not None:
            base, uniform, tensor = self.offsets(moved.source_values[0])
            distance = self.analysis.scalar(value)
            for identifier in self.analysis.scalars.leaves(distance.scalars):
                self.emitter.scalar(identifier)
            return base, uniform + distance, tensor
        shape = self.types.info(value).shape
        return pointer.base, ZERO, self.emitter.as_type(value, self.types.shaped(shape, self.types.i64))

    def _affine_offsets(self, value: Any, base: Any, index: Affine) -> tuple[Any, Poly, Any]:
        shape = self.types.info(value).shape
        assert shape is not None
        self.to_look_at(index.assumed)
        return base, index.offset, self.emitter.affine(index.at_offset(ZERO), shape)

    def _result_offsets(self, value: Any, operation: Any, pointer: Pointer) -> tuple[Any, Poly, Any]:
        name = operation.operation.name
        if name == "tt.addptr":
            return self._addptr_offsets(operation)
        if name == "tt.bitcast" and pointer.base is not None and self._keeps_size(operation):
            return self.offsets(operation.operands[0])
        if pointer.index is not None and (_is_known(pointer) or name in CARRIERS):
            return self._affine_offsets(value, pointer.base, pointer.index)
        if name in ("tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape"):
            base, uniform, tensor = self.offsets(operation.operands[0])
            return base, uniform, self.apply_shape(operation, tensor)
        if name == "tt.bitcast":
            return None, ZERO, self.addresses(operation.operands[0])
        if name == "tt.int_to_ptr":
            return None, ZERO, operation.operands[0]
        return self._carried_offsets(value, pointer)

    def _keeps_size(self, operation: Any) -> bool:
        before, after = self.types.info(operation.operands[0]), self.types.info(operation.results[0])
        return before.element_bytes == after.element_bytes

    def _addptr_offsets(self, operation: Any) -> tuple[Any, Poly, Any]:
        source, offset = operation.operands
        pointer = self.analysis.pointer(source)
        if (
            pointer.base is not None
            and pointer.index is not None
            and pointer.index.is_uniform
            and _is_known(pointer)
        ):
            return pointer.base, pointer.index.offset, self.emitter.to_offsets(offset)
        base, uniform, tensor = self.offsets(source)
        offset = self.emitter.to_i64(offset)
        if base is None:
            offset = self._scaled(offset, pointer.element_bytes)
        return base, uniform, self.emitter.add(self.emitter.to_i64(tensor), offset)

    def _scaled(self, tensor: Any, factor: int) -> Any:
        if factor == 1:
            return tensor
        scale = self.emitter.splat(self.emitter.constant(factor), tuple(tensor.type.shape))
        return self.emitter.value("arith.muli", [tensor, scale], tensor.type)

    def addresses(self, value: Any) -> Any:
        """A scalar or tensor of pointers as i64 byte addresses, created at the emitter's place."""
        emitter = self.emitter
        info = self.types.info(value)
        if info.shape is None:
            return emitter.value("llvm.ptrtoint", [self.scalar_pointer(value)], self.types.i64)
        base, uniform, tensor = self.offsets(value)
        if base is None:
            return tensor
        moved = emitter.pointer(base, uniform, info.element_bytes)
        start = emitter.splat(emitter.value("llvm.ptrtoint", [moved], self.types.i64), info.shape)
        return emitter.add(start, self._scaled(emitter.to_i64(tensor), info.element_bytes))

    def scalar_pointer(self, value: Any) -> Any:
        """A scalar pointer as !llvm.ptr, created at the emitter's place."""
        pointer = self.analysis.pointer(value)
        assert pointer.index is not None
        return self.emitter.pointer(pointer.base, pointer.index.offset, pointer.element_bytes)

    def plain(self, value: Any) -> Any:
        """A pointer as !llvm.ptr, a tensor of pointers as i64 addresses, any other value unchanged."""
        info = self.types.info(value)
        if not info.is_pointer:
            return value
        return self.scalar_pointer(value) if info.shape is None else self.addresses(value)

    # --- shapes ----------------------------------------------------------------------------------

    def apply_shape(self, operation: Any, tensor: Any) -> Any:
        """Apply a shape operation of Triton to `tensor`, which has the shape of its operand."""
        name = operation.operation.name
        before = self.types.info(operation.operands[0]).shape
        after = self.types.info(operation.results[0]).shape
        assert before is not None
        assert after is not None
        if name == "tt.broadcast":
            return self.emitter.broadcast_dims(tensor, before, after)
        if name == "tt.expand_dims":
            axis = ir.IntegerAttr(operation.attributes["axis"]).value
            return self.emitter.expand_dims(tensor, before, axis)
        if name == "tt.trans":
            order = tuple(ir.DenseI32ArrayAttr(operation.attributes["order"]))
            return self.emitter.transpose(tensor, after, order)
        return self.emitter.reshape(tensor, before, after)

    def rest_mask(self, rest: list[Rest]) -> Any:
        """The conjunction of the mask tensors that are not boxes, or None."""
        total = None
        for part in rest:
            value = part.value
            for operation in part.shape_ops:
                value = self.apply_shape(operation, value)
            total = value if total is None else self.emitter.value("arith.andi", [total, value], value.type)
        return total


def _is_known(pointer: Pointer) -> bool:
    """Whether the index is exact without any runtime check."""
    return pointer.index is not None and not pointer.index.is_open

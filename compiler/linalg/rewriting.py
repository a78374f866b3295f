"""The kernel while its operations are replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain.mlir import ir

from .conventions import Convention
from .expansion import GRID, Functions, Text, width
from .products import MAPS as PRODUCTS


class Rewriting:
    """One kernel's function, whose structured operations become upstream's."""

    def __init__(self, module: Any, kernel: Any, convention: Convention) -> None:
        self.module = module
        self.kernel = kernel
        self.convention = convention
        self.functions = Functions()
        self.moves: dict[Any, tuple[Any, Any]] = {}
        """Pointers that were moved: where they come from, and the distance in elements."""
        self.grid: list[Any] = []
        """The grid's sizes and the program's position, of the function that is rewritten."""
        self.called: dict[str, list[Any]] = {}
        """Functions that were called, and the types of their arguments."""
        self.kept: set[str] = set()
        """The names of operations that stayed, but for those of numbers."""
        self.numbers_as_masks = convention.llvm_19 and _multiplies(kernel)
        """Whether loops read masks as numbers."""
        self.messages: dict[str, str] = {}
        """The names of external functions that tell something, by what their declarations say."""
        self.function = kernel
        """The function that is rewritten: the kernel, or one that it calls."""
        self._shift: Any = None
        self._divisor, self._factor, self._size = 0, 1, 1

    @property
    def entry(self) -> Any:
        return self.kernel.regions[0].blocks[0]

    # --- the signature -------------------------------------------------------------------------------

    def sign(self) -> None:
        """Give the kernel the convention's signature: memrefs for pointers, then the grid and the position in it."""
        attributes = self.kernel.attributes
        given = attributes["arg_attrs"] if "arg_attrs" in attributes else ()  # noqa: SIM401 (MLIR's map has no `get`)
        kinds: dict[str, Any] = {}
        for argument, named in zip(self.entry.arguments, given, strict=False):
            if "tpk.pointee" in named:
                element = str(named["tpk.pointee"].value)
                element = "i8" if element == "i1" else element  # a boolean takes a byte in memory
                if element not in kinds:
                    kinds[element] = ir.Type.parse(self.convention.pointer(element))
                argument.set_type(kinds[element])
        self.grid = self._add_grid(self.kernel, [])

    def _add_grid(self, function: Any, results: Sequence[Any]) -> list[Any]:
        entry = function.regions[0].blocks[0]
        i32 = ir.IntegerType.get_signless(32)
        added = [entry.add_argument(i32, function.location) for _ in range(GRID)]
        for named in list(function.attributes):
            key = str(getattr(named, "name", named))
            if key.startswith("tpk.") or key == "arg_attrs":
                del function.attributes[key]
        kind = ir.FunctionType.get([argument.type for argument in entry.arguments], list(results))
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        return added

    @contextlib.contextmanager
    def inside(self, function: Any, results: Sequence[Any]) -> Iterator[None]:
        """Rewrite a function that the kernel calls, which gets the grid as arguments."""
        outer = self.grid, self.function
        self.grid, self.function = self._add_grid(function, results), function
        yield
        self.grid, self.function = outer

    def programs(self, axis: int) -> Any:
        """The grid's size along an axis."""
        return self.grid[axis]

    def program(self, axis: int) -> Any:
        """The program's position along an axis."""
        return self.grid[3 + axis]

    # --- operations ----------------------------------------------------------------------------------

    def pointee(self, pointer: Any) -> str:
        """The element type of a pointer that has become a memref."""
        return str(ir.ShapedType(pointer.type).element_type)

    def point_to(self, op: Any, element: str) -> None:
        """Let an access have a base with elements of that type. The distance of a moved base becomes an operand."""
        operation = op.operation
        pointer = op.base
        self._divisor, self._factor, self._size = 0, 1, 1
        if getattr(op, "byte_offsets", False):
            self._address_from_argument(op, element)
            return
        if not str(pointer.type).startswith("memref"):
            raise self.unsupported(
                operation, "its pointer is not derived from an argument", "index from pointer arguments"
            )
        self._shift = None
        moved = self.moves.get(pointer)
        if moved is not None:
            pointer, self._shift = moved
            pointer = self._measure(operation, pointer, element)
        self._retype(op, pointer, element)

    def _measure(self, operation: Any, pointer: Any, element: str) -> Any:
        """Note how a distance from `pointer` becomes one in elements. Returns the pointer behind casts, which are made
        for the distance alone.
        """
        pointee, source = self.pointee(pointer), _source(pointer)
        if width(element) <= width(pointee):
            self._factor = width(pointee) // width(element)
        elif width(element) <= width(self.pointee(source)):
            self._size = width(element) // width(pointee)
        else:
            raise self.unsupported(
                operation,
                f"a pointer to {self.pointee(source)} that was moved is used for elements of {element}, which are "
                "larger",
                "cast the pointer before you move it, or cast what is loaded or stored",
            )
        return source

    def _retype(self, op: Any, pointer: Any, element: str) -> None:
        """Give an access a base, whose elements may have another type."""
        operation = op.operation
        if self.pointee(pointer) != element:
            kind = ir.Type.parse(self.convention.pointer(element))
            cast = ir.Operation.create(
                "builtin.unrealized_conversion_cast",
                results=[kind],
                operands=[pointer],
                loc=operation.location,
                ip=ir.InsertionPoint(operation),
            )
            pointer = cast.result
        if pointer != op.base:
            operation.operands[op.position("base")] = pointer
            op._groups = None

    def argument_for(self, operation: Any, size: int) -> Any:
        """The first pointer argument whose elements have `size` bits or more."""
        for argument in self.function.regions[0].blocks[0].arguments:
            if str(argument.type).startswith("memref") and width(self.pointee(argument)) >= size:
                return argument
        raise self.unsupported(
            operation, "no pointer argument has elements of its size", "index from pointer arguments"
        )

    def _address_from_argument(self, op: Any, element: str) -> None:
        """Access absolute addresses by their distance from a pointer argument, whose elements are no smaller."""
        operation = op.operation
        size = width(element)
        argument = self.argument_for(operation, size)
        body = Text()
        address = body.let(f"memref.extract_aligned_pointer_as_index %a0 : {argument.type} -> index")
        (found,) = self.functions.call(operation, "address_of", [argument], ["index"], body, [address])
        self._shift, self._divisor = found, size // 8
        self._retype(op, argument, element)

    def shifted(self, body: Text, op: Any, position: str) -> str:
        """A position from the base of an access, in elements; see `point_to`."""
        if self._shift is None:
            return position
        name = f"%a{len(op.operation.operands)}"
        kind = str(self._shift.type)
        distance = name if kind == "index" else body.index(name, kind)
        if self._size > 1:  # without a rest: the elements behind the pointer are aligned
            distance = body.let(f"arith.divsi {distance}, {body.constant(self._size)} : index")
        if self._factor > 1:
            distance = body.let(f"arith.muli {distance}, {body.constant(self._factor)} : index")
        if not self._divisor:
            return body.let(f"arith.addi {position}, {distance} : index")
        bytes_ = body.let(f"arith.subi {position}, {distance} : index")
        return body.let(f"arith.divsi {bytes_}, {body.constant(self._divisor)} : index")

    def names(self, op: Op[Any]) -> dict[str, list[str]]:
        """The parameters of an expansion's function, by the names of the operation's groups."""
        found, start = {}, 0
        for name, values in op.by_name().items():
            found[name] = [f"%a{start + i}" for i in range(len(values))]
            start += len(values)
        return found

    def replace(self, operation: Any, label: str, body: Text, returned: Sequence[str]) -> None:
        """Put a function with this body, on the operation's operands, in the place of an operation."""
        results = [str(result.type) for result in operation.results]
        operands = list(operation.operands)
        if self._shift is not None:
            operands.append(self._shift)
            self._shift = None
        kinds = [result.type for result in operation.results]
        values = self.functions.call(operation, label, operands, results, body, returned, kinds)
        self.replace_by(operation, values)

    def replace_by(self, operation: Any, values: Sequence[Any]) -> None:
        for result, value in zip(operation.results, values, strict=True):
            result.replace_all_uses_with(value)
        operation.erase()

    def create(
        self, name: str, at: Any, results: Sequence[Any], operands: Sequence[Any], **attributes: Any
    ) -> Any:
        """Create an upstream operation with one region at the place of `at`."""
        return ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=1,
            loc=at.location,
            ip=ir.InsertionPoint(at),
        )

    def unsupported(self, operation: Any, why: str, remedy: str) -> CompilationError:
        """The error for an operation that the convention cannot express."""
        return CompilationError(
            f"{operation.name} has no form in the convention {self.convention.name}: {why}",
            operation=operation.name,
            location=source_location(operation.location),
            remedy=remedy,
        )


def _source(pointer: Any) -> Any:
    """The pointer that was cast to `pointer`, if it was."""
    while getattr(pointer.owner, "name", "") == "builtin.unrealized_conversion_cast":
        pointer = pointer.owner.operands[0]
    return pointer


def _multiplies(kernel: Any) -> bool:
    """Whether a kernel has products."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name not in PRODUCTS:
            return ir.WalkResult.ADVANCE
        found.append(operation)
        return ir.WalkResult.INTERRUPT

    kernel.walk(visit)
    return bool(found)


def move_region(
    source: Any, target: Any, kinds: Sequence[Any], replaced: Sequence[int], location: Any
) -> None:
    """Move the operations of a region's only block to a new block of `target`, ended by `linalg.yield`.

    The new block has arguments of `kinds`; the old block's argument i becomes its argument ``replaced[i]``.
    """
    old = source.blocks[0]
    new = target.blocks.append(*kinds, arg_locs=[location] * len(kinds))
    for argument, position in zip(old.arguments, replaced, strict=True):
        argument.replace_all_uses_with(new.arguments[position])
    for operation in list(old.operations):
        ended = operation.operation
        if ended.name != "tpk.yield":
            new.append(operation)
            continue
        with ir.InsertionPoint(new):
            ir.Operation.create("linalg.yield", operands=list(ended.operands), loc=location)
        ended.erase()

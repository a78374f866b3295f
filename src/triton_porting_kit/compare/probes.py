"""Instrumenting structured forms: record which store writes an element, or the values that one program computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.compiler.dialect import OPERATIONS
from triton_porting_kit.compiler.dialect import operations as ops
from triton_porting_kit.compiler.dialect.building import create
from triton_porting_kit.toolchain.mlir import ir

_MOVES = {
    *("arith.constant", "tensor.empty", "tensor.splat", "tensor.expand_shape", "tensor.collapse_shape"),
    *("arith.extui", "arith.extsi", "arith.index_cast"),
}
"""Operations that compute nothing new; the values of their operands are stored already."""
_NO_BODY = ("scf.for", "scf.if", "scf.while")
"""Operations whose regions are instrumented instead of their results."""
_STORES = (ops.Store.OPERATION_NAME, ops.Scatter.OPERATION_NAME)
_LIMIT = 64 << 20
"""The maximum size in bytes of the stored values."""
_ALIGNMENT = 64
CANARY = "canary"
"""The operation name of probes with which all programs store ones. If these are missing, the store itself is wrong."""
GATE = "gate"
"""The operation name of the probe that stores the program's number. If it is missing, no program has this number."""
STORE_SHIFT = 40
"""A witness has the number of the program, from 1, in its low bits and the number of the store above this bit."""

_TYPES = {name: element.name for name, element in OF_MLIR.items()} | {"i1": "i8"}
"""The element types that are stored: Triton's name of the stored type, by MLIR's name."""
_WITHOUT_ONE = tuple(name for name, element in OF_MLIR.items() if element.is_minifloat)
"""Types without canaries."""


@dataclass(frozen=True)
class Probe:
    """A value of one program that is stored."""

    operation: str
    location: str
    """As MLIR prints it."""
    type: str
    """Triton's element type."""
    shape: tuple[int, ...]
    offset: int
    """The offset in the memory of values, in bytes."""
    size: int


def instrument(module: Any, loops: Sequence[int] = ()) -> list[Probe]:
    """Change a kernel in place to store the values of one program.

    Additional parameters: the program; for each of `loops` (by number, see `witness`) the value of its induction
    variable in the iteration whose values are stored; and the memory. Of other loops the last values are stored.
    Operations that compute nothing, and operations after the first 64 MiB, are left out. There is also a canary for
    each type of values.
    """
    with module.context, ir.Location.unknown():
        function = _kernel(module)
        (block,) = function.regions[0].blocks
        i64, pointer = ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
        wanted, *iterations, memory = _add_arguments(function, [i64, *[i64] * len(loops), pointer])
        every = _loops(block)
        chosen_loops = [(every[number], value) for number, value in zip(loops, iterations, strict=True)]
        operations = list(_operations(block))
        start = ir.InsertionPoint(next(iter(block.operations)))
        builder = _Builder(start)
        chosen = builder.value("arith.cmpi", [builder.program(), wanted], ir.IntegerType.get_signless(1),
                               predicate=ir.IntegerAttr.get(i64, 0))  # fmt: skip
        always = builder.value(
            "arith.cmpi", [wanted, wanted], chosen.type, predicate=ir.IntegerAttr.get(i64, 0)
        )
        probes: list[Probe] = []
        seen: set[str] = set()
        end = 0

        def keep(operation: str, location: str, value: Any, at: _Builder, when: Any) -> bool:
            nonlocal end
            probe = _probe(operation, location, value.type, end)
            if probe.offset + probe.size > _LIMIT:
                return False
            at.keep(value, memory, probe.offset // _bytes(probe.type), when)
            probes.append(probe)
            end += -(-probe.size // _ALIGNMENT) * _ALIGNMENT
            return True

        keep(GATE, "", wanted, builder, chosen)
        for operation in operations:
            if operation.name in (*_MOVES, *_NO_BODY):
                continue
            for result in operation.results:
                if _element(result.type) not in _TYPES:
                    continue
                if str(result.type) not in seen and _element(result.type) not in _WITHOUT_ONE:
                    seen.add(str(result.type))
                    early = _Builder(start)
                    keep(CANARY, "", early.ones(result.type), early, always)
                builder.after(operation)
                around = _around(operation)
                when = chosen
                for loop, value in chosen_loops:
                    if loop in around:
                        when = builder.both(when, builder.is_in(loop, value))
                if not keep(operation.name, str(operation.location), result, builder, when):
                    return probes
        return probes


def _probe(operation: str, location: str, kind: Any, offset: int) -> Probe:
    shape = tuple(kind.shape) if _is_tensor(kind) else ()
    name = _TYPES[_element(kind)]
    return Probe(operation, location, name, shape, offset, math.prod(shape) * _bytes(name))


@dataclass(frozen=True)
class Store:
    """An instrumented store, which records the program that stores."""

    location: str
    loops: tuple[int, ...]
    """The loops around it by their numbers in the kernel, the outermost first."""


LOOPS = 2
"""The number of loops around a store whose iteration is recorded."""


def witness(module: Any, arguments: Sequence[int]) -> list[Store]:
    """Change a kernel in place so that every store through one of these parameters also records the program.

    For each parameter the kernel gets 1 + `LOOPS` additional pointers, each to one i64 per element: for the program
    and the number of the store, and for the induction variables of the loops around it. Returns the stores. Stores
    through a pointer selected from several arguments are not detected.
    """
    with module.context, ir.Location.unknown():
        function = _kernel(module)
        (block,) = function.regions[0].blocks
        pointers = [block.arguments[number] for number in arguments]
        kind = ir.Type.parse("!llvm.ptr")
        added = _add_arguments(function, [kind] * (len(pointers) * (1 + LOOPS)))
        every = _loops(block)
        operations = list(_operations(block))
        builder = _Builder(ir.InsertionPoint(next(iter(block.operations))))
        one = builder.integer(1)
        program = builder.value("arith.addi", [builder.program(), one], one.type)
        places: list[Store] = []
        for operation in operations:
            atomic = ops.AtomicRmw.isa(operation)
            if operation.name not in _STORES and not atomic:
                continue
            for index, pointer in enumerate(pointers):
                if operation.operands[0] == pointer and "byte_offsets" not in operation.attributes:
                    builder.after(operation)
                    number = builder.integer(len(places) << STORE_SHIFT)
                    note, *more = added[index * (1 + LOOPS) : (index + 1) * (1 + LOOPS)]
                    around = _around(operation)
                    loops = [n for n, loop in enumerate(every) if loop in around][:LOOPS]
                    for loop, memory in zip(loops, more, strict=False):
                        builder.note(operation, memory, builder.induction(every[loop]))
                    builder.note(operation, note, builder.value("arith.addi", [program, number], one.type))
                    places.append(Store(str(operation.location), tuple(loops)))
        return places


class _Builder:
    def __init__(self, at: Any) -> None:
        self._at = at
        self._i64 = ir.IntegerType.get_signless(64)
        self._i32 = ir.IntegerType.get_signless(32)

    def after(self, operation: Any) -> None:
        """Continue after an operation."""
        block = list(operation.operation.block.operations)
        index = next(i for i, found in enumerate(block) if found.operation == operation)
        self._at = ir.InsertionPoint(block[index + 1])

    def value(self, name: str, operands: Sequence[Any], kind: Any, **attributes: Any) -> Any:
        return ir.Operation.create(
            name, results=[kind], operands=list(operands), attributes=attributes, ip=self._at
        ).results[0]

    def integer(self, value: int) -> Any:
        return self.value("arith.constant", [], self._i64, value=ir.IntegerAttr.get(self._i64, value))

    def program(self) -> Any:
        """The number of the program; x varies fastest."""
        total = self.integer(0)
        for axis in (2, 1, 0):
            attribute = {"axis": ir.IntegerAttr.get(self._i32, axis)}
            index, count = (
                self.value("arith.extsi", [self.value(f"tpk.{name}", [], self._i32, **attribute)], self._i64)
                for name in ("program_id", "num_programs")
            )
            total = self.value("arith.muli", [total, count], self._i64)
            total = self.value("arith.addi", [total, index], self._i64)
        return total

    def induction(self, loop: Any) -> Any:
        """The induction variable of a loop, as i64."""
        value = loop.regions[0].blocks[0].arguments[0]
        if value.type == self._i64:
            return value
        name = "arith.index_cast" if isinstance(value.type, ir.IndexType) else "arith.extsi"
        return self.value(name, [value], self._i64)

    def is_in(self, loop: Any, iteration: Any) -> Any:
        """Whether a loop is in the iteration with this value of its induction variable."""
        equal = ir.IntegerAttr.get(self._i64, 0)
        kind = ir.IntegerType.get_signless(1)
        return self.value("arith.cmpi", [self.induction(loop), iteration], kind, predicate=equal)

    def both(self, a: Any, b: Any) -> Any:
        """The conjunction of two conditions."""
        return self.value("arith.andi", [a, b], a.type)

    def ones(self, kind: Any) -> Any:
        """A value of a type whose elements are all 1."""
        element = kind.element_type if _is_tensor(kind) else kind
        make = ir.IntegerAttr.get if isinstance(element, ir.IntegerType) else ir.FloatAttr.get
        one = self.value("arith.constant", [], element, value=make(element, 1))
        return self.value("tensor.splat", [one], kind) if _is_tensor(kind) else one

    def keep(self, value: Any, memory: Any, offset: int, chosen: Any) -> None:
        """Store a value unchanged in row-major order, if `chosen`."""
        if _element(value.type) == "i1":
            i8 = ir.IntegerType.get_signless(8)
            wide = ir.RankedTensorType.get(value.type.shape, i8) if _is_tensor(value.type) else i8
            value = self.value("arith.extui", [value], wide)
        if not _is_tensor(value.type):
            value = self.value("tensor.splat", [value], ir.RankedTensorType.get([1], value.type))
        shape = list(value.type.shape)
        zero = self.integer(0)
        strides: list[Any] = []
        step = 1
        for count in reversed(shape):
            strides.insert(0, self.integer(step))
            step *= count
        highs = [
            self.value("arith.select", [chosen, self.integer(count), zero], self._i64) for count in shape
        ]
        given = {
            "base": memory, "offset": self.integer(offset), "strides": strides,
            "low": [zero] * len(shape), "high": highs, "value": value,
        }  # fmt: skip
        create(ops.Store, given, [], at=self._at)

    def note(self, store: Any, memory: Any, number: Any) -> None:
        """Store `number` in another array, at the place where `store` stores."""
        view = OPERATIONS[store.name](store)
        given = view.by_name()
        (stored,) = given["value"]
        value = number
        if _is_tensor(stored.type):
            value = self.value(
                "tensor.splat", [number], ir.RankedTensorType.get(stored.type.shape, self._i64)
            )
        given |= {"base": [memory], "value": [value]}
        if isinstance(view, ops.AtomicRmw):
            create(ops.Scatter, given, [], at=self._at)
        else:
            attributes = {name: store.attributes[name] for name in store.attributes}
            create(type(view), given, [], attributes, at=self._at)


def _kernel(module: Any) -> Any:
    (function,) = (op for op in module.body.operations if op.operation.name == "func.func")
    return function.operation


def _add_arguments(function: Any, kinds: Sequence[Any]) -> list[Any]:
    (block,) = function.regions[0].blocks
    known = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([*known.inputs, *kinds], list(known.results))
    )
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        pointer = ir.DictAttr.get({"tpk.pointee": ir.TypeAttr.get(ir.IntegerType.get_signless(8))})
        added = [pointer if "ptr" in str(kind) else ir.DictAttr.get({}) for kind in kinds]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*attributes, *added])
    return [block.add_argument(kind, ir.Location.unknown()) for kind in kinds]


def _operations(block: Any) -> Iterator[Any]:
    """The operations of a block and of control flow in it, in order, without terminators."""
    for operation in list(block.operations)[:-1]:
        if operation.operation.name in _NO_BODY:
            for region in operation.operation.regions:
                for inner in region.blocks:
                    yield from _operations(inner)
        yield operation.operation


def _loops(block: Any) -> list[Any]:
    """The `scf.for` operations of a block and of control flow in it, in order, outer loops first."""
    found = []
    for operation in block.operations:
        if operation.operation.name == "scf.for":
            found.append(operation.operation)
        if operation.operation.name in _NO_BODY:
            for region in operation.operation.regions:
                for inner in region.blocks:
                    found += _loops(inner)
    return found


def _around(operation: Any) -> list[Any]:
    """The operations that contain an operation."""
    found = []
    parent = operation.operation.parent
    while parent is not None and parent.operation.name not in ("func.func", "builtin.module"):
        found.append(parent.operation)
        parent = parent.operation.parent
    return found


def _is_tensor(kind: Any) -> bool:
    return isinstance(kind, ir.RankedTensorType)


def _element(kind: Any) -> str:
    return str(kind.element_type if _is_tensor(kind) else kind)


def _bytes(name: str) -> int:
    found = "".join(
        character for character in name.removeprefix("fp8").removeprefix("bf") if character.isdigit()
    )
    return 1 if name.startswith("fp8") else int(found) // 8

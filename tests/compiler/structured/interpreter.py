"""Where a kernel reads and writes: by an interpreter of TTIR, and by that of the structured form.

Memory is no array: a load at an address returns a value that depends on the address only, so reads of any
place can be compared; stores are recorded. The trace of one form must equal the trace of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.compiler.dialect.interpreter import HANDLERS, Launch, Memory, read_kernel
from triton_porting_kit.toolchain.mlir import ir

Trace = list[tuple[str, Any, Any]]
"""Of each access, in program order: its kind, the addresses that it touches, and its values."""

_BINARY = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "addf": np.add,
    "mulf": np.multiply,
    "divsi": lambda a, b: (a - np.fmod(a, np.where(b == 0, 1, b))) // np.where(b == 0, 1, b),
    "remsi": lambda a, b: np.fmod(a, np.where(b == 0, 1, b)),
    "ceildivsi": lambda a, b: -(-a // b),
    "floordivsi": lambda a, b: a // b,
}
_COMPARE = [
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
]  # fmt: skip


def _unsigned(value: Any, kind: Any) -> Any:
    """An integer of an MLIR type read as unsigned: in int64, those of 64 bits in uint64."""
    bits = _bits(kind)
    value = np.asarray(value, dtype=np.int64)
    return value.view(np.uint64) if bits == 64 else value & ((1 << bits) - 1)


def _bits(kind: Any) -> int | None:
    """The bits of an integer type or of the integers of a tensor type; None for other types."""
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    return element.width if isinstance(element, ir.IntegerType) else None


def wrapped(value: Any, bits: int) -> Any:
    """The lowest `bits`, with their sign, as int64."""
    value = np.asarray(value)
    if value.dtype != np.int64:
        value = value.astype(np.int64)
    if bits == 64:
        return value
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def memory_at(addresses: Any) -> Any:
    """The value that lies at a byte address."""
    return (np.asarray(addresses, dtype=np.int64) // 4 * 7919) % 23


class TracedMemory(Memory):
    """Memory of i32 at any address, which keeps the addresses of the last access."""

    def __init__(self) -> None:
        super().__init__()
        self.touched: Any = None

    def read(self, addresses: Any, element: str) -> Any:
        assert element == "i32"
        self.touched = addresses
        return memory_at(addresses).astype(np.int32)

    def write(self, addresses: Any, values: Any) -> None:
        assert values.dtype == np.int32
        self.touched, self.values = addresses, values


def structured_trace(module: Any, arguments: list[Any], position: tuple[int, int, int]) -> Trace:
    """The trace of one program of a structured form."""
    memory, trace = TracedMemory(), []

    def load(run: Any, op: Any, *operands: Any) -> Any:
        result = HANDLERS[op.name](run, op, *operands)
        trace.append(("load", memory.touched, result))
        return result

    def store(run: Any, op: Any, *operands: Any) -> None:
        HANDLERS[op.name](run, op, *operands)
        trace.append(("store", memory.touched, memory.values))

    watched = dict.fromkeys(("tpk.load", "tpk.gather"), load) | dict.fromkeys(
        ("tpk.store", "tpk.scatter"), store
    )
    kernel = read_kernel(module)
    pointers = [
        np.int64(n) if p.is_pointer else np.int32(n)
        for p, n in zip(kernel.parameters, arguments, strict=True)
    ]
    Launch(kernel, (1, 1, 1), memory, handlers=HANDLERS | watched).program(position, pointers)
    return trace


@dataclass
class Interpreter:
    """Runs the first function of a module in TTIR."""

    arguments: list[Any]
    program: tuple[int, int, int] = (0, 0, 0)
    wraps: bool = True
    """Whether integers wrap around; else all are computed in 64 bits."""
    trace: Trace = field(default_factory=list)
    masks: bool = True
    """Whether masks keep elements from being touched."""
    values: dict[Any, Any] = field(default_factory=dict)

    def run(self, module: Any) -> Trace:
        """(kind, touched addresses in order, values) of each access, in program order."""
        block = module.body.operations[0].regions[0].blocks[0]
        self.values.update(zip(block.arguments, map(np.int64, self.arguments), strict=True))
        with np.errstate(over="ignore"):
            self.block(block)
        return self.trace

    def block(self, block: Any) -> list[Any]:
        """Run a block; the operands of its terminator."""
        operations = list(block.operations)
        for operation in operations[:-1]:
            self.operation(operation.operation)
        return [self.values[v] for v in operations[-1].operands]

    def operation(self, op: Any) -> None:
        operands = [self.values[v] for v in op.operands]
        dialect, _, short = op.name.partition(".")
        if dialect == "arith" and short in _BINARY:
            results = [_BINARY[short](*operands)]
        else:
            results = getattr(self, op.name.replace(".", "_"))(op, *operands)
        kinds = [_bits(result.type) for result in op.results]
        results = [
            wrapped(value, bits) if self.wraps and value is not None and bits not in (None, 1) else value
            for value, bits in zip([] if results is None else results, kinds, strict=True)
        ]
        self.values.update(zip(op.results, results, strict=True))

    # --- scalars and tensors ---------------------------------------------------------------------

    def arith_constant(self, op: Any) -> list[Any]:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr | ir.FloatAttr):
            return [attribute.value]
        return [np.full(_shape(op), attribute.get_splat_value().value)]

    def arith_cmpi(self, op: Any, a: Any, b: Any) -> list[Any]:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        if predicate > 5:
            a, b = (
                _unsigned(value, operand.type) for value, operand in zip((a, b), op.operands, strict=True)
            )
        return [_COMPARE[predicate](a, b)]

    def arith_select(self, op: Any, condition: Any, a: Any, b: Any) -> list[Any]:
        return [np.where(condition, a, b)]

    def _same(self, op: Any, value: Any) -> list[Any]:
        return [value]

    arith_extsi = arith_trunci = _same

    def arith_extui(self, op: Any, value: Any) -> list[Any]:
        return [_unsigned(value, op.operands[0].type)]

    def arith_remui(self, op: Any, a: Any, b: Any) -> list[Any]:
        a, b = (_unsigned(value, operand.type) for value, operand in zip((a, b), op.operands, strict=True))
        return [np.fmod(a, np.where(b == 0, 1, b).astype(b.dtype))]

    tt_int_to_ptr = tt_ptr_to_int = tt_bitcast = _same

    def tt_get_program_id(self, op: Any) -> list[Any]:
        return [self.program[ir.IntegerAttr(op.attributes["axis"]).value]]

    def tt_make_range(self, op: Any) -> list[Any]:
        return [np.arange(_shape(op)[0]) + ir.IntegerAttr(op.attributes["start"]).value]

    def tt_splat(self, op: Any, value: Any) -> list[Any]:
        return [np.full(_shape(op), value)]

    def tt_broadcast(self, op: Any, value: Any) -> list[Any]:
        return [np.broadcast_to(value, _shape(op))]

    def tt_reshape(self, op: Any, value: Any) -> list[Any]:
        return [np.reshape(value, _shape(op))]

    tt_expand_dims = tt_reshape

    def tt_trans(self, op: Any, value: Any) -> list[Any]:
        return [np.transpose(value, tuple(ir.DenseI32ArrayAttr(op.attributes["order"])))]

    # --- control flow ----------------------------------------------------------------------------

    def scf_for(self, op: Any, low: Any, high: Any, step: Any, *carried: Any) -> list[Any]:
        block = op.regions[0].blocks[0]
        current = list(carried)
        for i in range(int(low), int(high), int(step)):
            self.values.update(zip(block.arguments, [np.int64(i), *current], strict=True))
            current = self.block(block)
        return current

    def scf_while(self, op: Any, *carried: Any) -> list[Any]:
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        current = list(carried)
        while True:
            self.values.update(zip(before.arguments, current, strict=True))
            condition, *forwarded = self.block(before)
            if not condition:
                return forwarded
            self.values.update(zip(after.arguments, forwarded, strict=True))
            current = self.block(after)

    def scf_if(self, op: Any, condition: Any) -> list[Any]:
        return self.block(op.regions[0 if condition else 1].blocks[0])

    # --- memory ----------------------------------------------------------------------------------

    def tt_addptr(self, op: Any, pointer: Any, offset: Any) -> list[Any]:
        return [pointer + 4 * np.asarray(offset, dtype=np.int64)]

    def tt_load(self, op: Any, *operands: Any) -> list[Any]:
        pointer, mask, other = _split(op, operands)
        return [self._load(pointer, True if mask is None else mask, 0 if other is None else other)]

    def tt_store(self, op: Any, pointer: Any, value: Any, mask: Any = True) -> None:
        self._store(pointer, mask, value)

    def _load(self, addresses: Any, mask: Any, other: Any) -> Any:
        addresses, mask, other = np.broadcast_arrays(np.asarray(addresses), mask, other)
        result = np.where(mask, memory_at(addresses), other)
        mask = mask if self.masks else np.full_like(mask, True)
        self.trace.append(("load", addresses[mask], result))
        return result

    def _store(self, addresses: Any, mask: Any, value: Any) -> None:
        addresses, mask, value = np.broadcast_arrays(np.asarray(addresses), mask, value)
        mask = mask if self.masks else np.full_like(mask, True)
        self.trace.append(("store", addresses[mask], value[mask]))


def _shape(op: Any) -> tuple[int, ...]:
    return tuple(op.results[0].type.shape)


def _split(op: Any, operands: tuple[Any, ...]) -> list[Any]:
    return [group[0] if group else None for group in _groups(op, operands)]


def _groups(op: Any, operands: tuple[Any, ...]) -> list[list[Any]]:
    found, rest = [], list(operands)
    for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]):
        found.append(rest[:size])
        rest = rest[size:]
    return found


def assert_same_trace(first: list[Any], second: list[Any]) -> None:
    """Both forms touch the same addresses, in the same order, with the same values."""
    assert [kind for kind, _, _ in first] == [kind for kind, _, _ in second]
    for (_, addresses, values), (_, other_addresses, other_values) in zip(first, second, strict=True):
        np.testing.assert_array_equal(addresses, other_addresses)
        np.testing.assert_array_equal(values, other_values)


def is_same_trace(first: list[Any], second: list[Any]) -> bool:
    """Whether `assert_same_trace` would agree."""
    try:
        assert_same_trace(first, second)
    except AssertionError:
        return False
    return True

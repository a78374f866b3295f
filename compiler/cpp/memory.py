"""Memory accesses, atomics, and construction and extraction of vectors, in any dialect."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.compiler.cpp import arithmetic, buffers, literals, opencl
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import CppType, cast, parse

_DYNAMIC = -(1 << 31)
_DYNAMIC_POSITION = -(1 << 63)

_ORDERS = {1: "relaxed", 2: "relaxed", 4: "acquire", 5: "release", 6: "acq_rel", 7: "seq_cst"}
"""By MLIR's numbers of LLVM's orderings; 0 means not atomic."""

_FETCH = {0: "exchange", 1: "fetch_add", 2: "fetch_sub", 3: "fetch_and", 5: "fetch_or", 6: "fetch_xor"}
_UPDATES = {
    1: "arith.addi", 2: "arith.subi", 3: "arith.andi", 5: "arith.ori", 6: "arith.xori",
    7: "arith.maxsi", 8: "arith.minsi", 9: "arith.maxui", 10: "arith.minui",
    11: "arith.addf", 12: "arith.subf", 13: "arith.maxnumf", 14: "arith.minnumf",
}  # fmt: skip
"""Atomic operations by MLIR's numbers."""


# --- addresses ---------------------------------------------------------------------------------------------


def address(emitter: Emitter, operation: Any) -> str:
    """llvm.getelementptr with one index."""
    (index,) = emitter.numbers(operation, "rawConstantIndices")
    element = parse(emitter.type_text(operation, "elem_type"))
    if element is None:
        raise emitter.unsupported(operation, "an address of elements of this type")
    size = max(element.bits // 8, 1)
    base, *rest = emitter.operands(operation)
    result = emitter.result_type(operation)
    if result.lanes:
        offsets = _scaled(rest[0], size)
        starts = base
        if not emitter.type_of(operation.operands[0]).lanes:
            starts = f"{emitter.function('splat', result)}({cast('u64', base)})"
        return f"{starts} + {offsets}"
    if index != _DYNAMIC:
        return f"{base} + {index * size}" if index else base
    literal = emitter.literal_of(rest[0])
    if literal is not None and 0 <= literal < 1 << 31:
        return f"{base} + {literal * size}"
    type = emitter.type_of(operation.operands[1])
    offset = rest[0]
    if type.bits < 64:
        offset = f"(u64)(i64){arithmetic.signed(emitter, offset, type)}"
    if base == literals.scalar(emitter.support, result, 0):  # a number: there is no object at null
        return cast(result.name, _scaled(offset, size))
    return f"{emitter.function('at', result)}({base}, {_scaled(offset, size)})"


def _scaled(offset: str, size: int) -> str:
    return offset if size == 1 else f"{offset} * {size}"


def global_address(emitter: Emitter, operation: Any) -> str:
    """llvm.mlir.addressof."""
    return cast(emitter.result_type(operation).name, emitter.text(operation, "global_name"))


def frame(emitter: Emitter, operation: Any) -> str:
    """llvm.alloca of a constant number of bytes."""
    count = emitter.literal_of(emitter.operands(operation)[0])
    element = parse(emitter.type_text(operation, "elem_type"))
    if count is None or element is None:
        raise emitter.unsupported(operation, "a frame whose size is not constant")
    name = emitter.fresh("frame")
    emitter.statement(f"char {name}[{count * max(element.bits // 8, 1)}] __attribute__((aligned(64)));")
    return name


# --- loads and stores --------------------------------------------------------------------------------------


def _bits(type: CppType) -> CppType:
    """The unsigned integer that a value is in memory."""
    return CppType("u8", 8) if type.is_truth else CppType(f"u{type.bits}", type.bits)


def _place(operation: Any) -> Any:
    """The operand that is a pointer or a vector of pointers."""
    return next(value for value in operation.operands if "!llvm.ptr" in str(value.type))


def _accessor(emitter: Emitter, operation: Any, name: str, *types: CppType, **words: str) -> str:
    """A support function that accesses memory in the address space of an operation's pointers."""
    return emitter.function(name, *types, space=emitter.space_of(_place(operation)), **words)


def _volatile(emitter: Emitter, operation: Any, place: str, bits: CppType) -> str:
    """The memory of a volatile access."""
    space = emitter.space_of(_place(operation))
    return f"*{emitter.dialect.pointer(bits.name, place, space, 'volatile ')}"


def _argument_offset(emitter: Emitter, place: Any) -> int | None:
    """The offset in the argument block of a place in it; None for another place."""
    if place == emitter.argument_block:
        return 0
    owner = getattr(place.owner, "operation", None)
    if owner is None or owner.name != "llvm.getelementptr" or owner.operands[0] != emitter.argument_block:
        return None
    element = parse(emitter.type_text(owner, "elem_type"))
    (index,) = emitter.numbers(owner, "rawConstantIndices")
    number = emitter.literal_of(emitter.name_of(owner.operands[1])) if index == _DYNAMIC else index
    return None if element is None or number is None else number * max(element.bits // 8, 1)


def _buffer(emitter: Emitter, operation: Any, place: str) -> str:
    """The pointer that a buffer and the offset at a place of the argument block stand for."""
    offset = _argument_offset(emitter, operation.operands[0])
    if offset is None:
        raise emitter.unsupported(operation, "a pointer that is loaded from memory", buffers.REMEDY)
    count = CppType("u64", 64)
    return (
        f"{emitter.function('at', emitter.result_type(operation))}"
        f"({opencl.buffer_name(offset)}, {emitter.function('load', count)}({place}))"
    )


def load(emitter: Emitter, operation: Any) -> str:
    (place,) = emitter.operands(operation)
    type = emitter.result_type(operation)
    if emitter.buffers and type.element == "ptr":
        return _buffer(emitter, operation, place)
    order = emitter.integer(operation, "ordering", 0)
    if not order and not emitter.has(operation, "volatile_"):
        return f"{_accessor(emitter, operation, 'load', type)}({place})"
    if type.lanes:
        raise emitter.unsupported(operation, "a volatile or atomic load of a vector")
    bits = _bits(type)
    if order:
        value = f"{_accessor(emitter, operation, 'atomic_load', bits, order=_ORDERS[order])}({place})"
    else:
        value = _volatile(emitter, operation, place, bits)
    return emitter.bits_as(value, type, bits)


def store(emitter: Emitter, operation: Any) -> None:
    value, place = emitter.operands(operation)
    type = emitter.type_of(operation.operands[0])
    order = emitter.integer(operation, "ordering", 0)
    if not order and not emitter.has(operation, "volatile_"):
        emitter.statement(f"{_accessor(emitter, operation, 'store', type)}({place}, {value});")
        return
    if type.lanes:
        raise emitter.unsupported(operation, "a volatile or atomic store of a vector")
    bits = _bits(type)
    value = emitter.bits_as(value, bits, type)
    if order:
        function = _accessor(emitter, operation, "atomic_store", bits, order=_ORDERS[order])
        emitter.statement(f"{function}({place}, {value});")
    else:
        emitter.statement(f"{_volatile(emitter, operation, place, bits)} = {value};")


def load_masked(emitter: Emitter, operation: Any) -> str:
    return _masked(emitter, operation, "load_masked")


def gather(emitter: Emitter, operation: Any) -> str:
    return _masked(emitter, operation, "gather")


def _masked(emitter: Emitter, operation: Any, name: str) -> str:
    place, mask, *other = emitter.operands(operation)
    type = emitter.result_type(operation)
    types = [type, emitter.type_of(operation.operands[1])]
    if name == "gather":
        types.append(emitter.type_of(operation.operands[0]))
    rest = other[0] if other else literals.zero(emitter.support, type)
    return f"{_accessor(emitter, operation, name, *types)}({place}, {mask}, {rest})"


def store_masked(emitter: Emitter, operation: Any) -> None:
    value, place, mask = emitter.operands(operation)
    types = [emitter.type_of(operation.operands[position]) for position in (0, 2)]
    emitter.statement(f"{_accessor(emitter, operation, 'store_masked', *types)}({place}, {value}, {mask});")


def scatter(emitter: Emitter, operation: Any) -> None:
    value, places, mask = emitter.operands(operation)
    types = [emitter.type_of(operation.operands[position]) for position in (0, 2, 1)]
    emitter.statement(f"{_accessor(emitter, operation, 'scatter', *types)}({value}, {places}, {mask});")


# --- atomics -----------------------------------------------------------------------------------------------


def _is_narrow(emitter: Emitter, bits: CppType) -> bool:
    """Whether the language has no atomic operations on so few bits."""
    return emitter.dialect.spaces and bits.bits < 32


def read_modify_write(emitter: Emitter, operation: Any) -> str:
    place, value = emitter.operands(operation)
    type = emitter.result_type(operation)
    kind = emitter.integer(operation, "bin_op")
    order = _ORDERS[emitter.integer(operation, "ordering")]
    bits = _bits(type)
    is_narrow = _is_narrow(emitter, bits)
    if kind in _FETCH and not is_narrow:
        function = _accessor(emitter, operation, f"atomic_{_FETCH[kind]}", bits, order=order)
        return emitter.bits_as(f"{function}({place}, {emitter.bits_as(value, bits, type)})", type, bits)
    if kind != 0 and kind not in _UPDATES:
        raise emitter.unsupported(operation, f"the atomic operation {kind}")
    name = _UPDATES.get(kind, "exchange")
    body = arithmetic.binary(emitter, name, "old", "value", type) if kind else "value"
    update = "atomic_update_narrow" if is_narrow else "atomic_update"
    word = name.rpartition(".")[2]
    function = _accessor(emitter, operation, update, type, bits, order=order, word=word, body=body)
    return f"{function}({place}, {value})"


def compare_and_swap(emitter: Emitter, operation: Any) -> None:
    """Two variables: the value found, and whether it was the expected one (see `extract_value`)."""
    place, expected, desired = emitter.operands(operation)
    type = emitter.type_of(operation.operands[1])
    order = _ORDERS[emitter.integer(operation, "success_ordering")]
    name = "atomic_swap_narrow_if" if _is_narrow(emitter, type) else "atomic_swap_if"
    function = _accessor(emitter, operation, name, _bits(type), order=order)
    found, done = emitter.fresh("found"), emitter.fresh("done")
    emitter.statement(f"const {type.name} {found} = {function}({place}, {expected}, {desired});")
    emitter.statement(f"const bool {done} = {found} == {expected};")
    emitter.define_parts(operation.results[0], [found, done])


def extract_value(emitter: Emitter, operation: Any) -> str:
    (position,) = emitter.numbers(operation, "position")
    return emitter.parts(operation.operands[0])[position]


# --- vectors -----------------------------------------------------------------------------------------------


def _as_lane(value: str, type: CppType) -> str:
    """A scalar in the lane type of its vector type."""
    if type.is_truth:
        return f"{value} ? -1 : 0"
    return cast("u64", value) if type.element == "ptr" else value


def _of_lane(value: str, mlir_element: CppType) -> str:
    if mlir_element.is_truth:
        return f"{value} != 0"
    return cast(mlir_element.name, value) if mlir_element.element == "ptr" else value


def broadcast(emitter: Emitter, operation: Any) -> str:
    (value,) = emitter.operands(operation)
    source = emitter.type_of(operation.operands[0])
    if source.lanes:
        value = emitter.dialect.constant_lane(value, 0)
        if source.lanes == emitter.result_type(operation).lanes:
            return emitter.operands(operation)[0]
    else:
        value = _as_lane(value, source)
    return f"{emitter.function('splat', emitter.result_type(operation))}({value})"


def extract(emitter: Emitter, operation: Any) -> str:
    vector, *dynamic = emitter.operands(operation)
    (position,) = emitter.numbers(operation, "static_position")
    if position == _DYNAMIC_POSITION:
        if not vector.isidentifier():
            name, literal = emitter.fresh("v"), vector
            emitter.statement(f"const {emitter.type_of(operation.operands[0]).name} {name} = {literal};")
            vector = name
        text = emitter.dialect.lane(vector, dynamic[0], emitter.type_of(operation.operands[0]))
    else:
        text = emitter.dialect.constant_lane(vector, position)
    return _of_lane(text, emitter.result_type(operation))


def from_elements(emitter: Emitter, operation: Any) -> str:
    values = emitter.operands(operation)
    element = emitter.type_of(operation.operands[0])
    lanes = [_as_lane(value, element) for value in values]
    return emitter.dialect.vector(emitter.result_type(operation), lanes)


def shuffle(emitter: Emitter, operation: Any) -> str:
    """vector.shuffle that extracts adjacent lanes of the first vector, the only kind that the lowering emits."""
    vector = emitter.operands(operation)[0]
    lanes = emitter.numbers(operation, "mask")
    first, last = lanes[0], lanes[-1]
    if list(lanes) != list(range(first, last + 1)) or last >= (
        emitter.type_of(operation.operands[0]).lanes or 1
    ):
        raise emitter.unsupported(operation, "a shuffle of lanes that are not neighbours")
    source = emitter.type_of(operation.operands[0])
    return f"{emitter.function('slice', emitter.result_type(operation), source)}({vector}, {first})"


def interleave(emitter: Emitter, operation: Any) -> str:
    a, b = emitter.operands(operation)
    type = emitter.result_type(operation)
    source = emitter.type_of(operation.operands[0])
    if not source.lanes:
        return emitter.dialect.vector(type, [a, b])
    return f"{emitter.function('interleave', type, source)}({a}, {b})"


_REDUCTIONS = {
    "mul": ("arith.mulf", "arith.muli"), "minui": (None, "arith.minui"), "minsi": (None, "arith.minsi"),
    "minnumf": ("arith.minnumf", None), "maxui": (None, "arith.maxui"), "maxsi": (None, "arith.maxsi"),
    "maxnumf": ("arith.maxnumf", None), "and": (None, "arith.andi"), "or": (None, "arith.ori"),
    "xor": (None, "arith.xori"), "maximumf": ("arith.maximumf", None), "minimumf": ("arith.minimumf", None),
    "add": ("arith.addf", "arith.addi"),
}  # fmt: skip
"""vector.reduction's kinds: the operation on floats, and on integers."""


def reduction(emitter: Emitter, operation: Any) -> str:
    vector, *start = emitter.operands(operation)
    type = emitter.type_of(operation.operands[0])
    found = re.search(r"<(\w+)>", str(operation.attributes["kind"]))
    name = _REDUCTIONS[found[1]][0 if type.is_float else 1] if found else None
    if name is None or (type.is_truth and name not in ("arith.andi", "arith.ori")):
        raise emitter.unsupported(operation, "a reduction of this kind")
    if type.is_truth:
        result = f"{emitter.function('all' if name == 'arith.andi' else 'any', type)}({vector})"
    else:
        in_order = type.is_float and name in ("arith.addf", "arith.mulf")
        if "reassoc" in str(operation.attributes["fastmath"]) or "fast>" in str(
            operation.attributes["fastmath"]
        ):
            in_order = False
        body = arithmetic.binary(emitter, name, "a", "b", type.scalar)
        function = emitter.function(
            "reduce_in_order" if in_order else "reduce_pairs", type, word=name.rpartition(".")[2], body=body
        )
        result = f"{function}({vector})"
    return arithmetic.binary(emitter, name, start[0], result, type.scalar) if start else result


EXPRESSIONS = {
    "llvm.getelementptr": address,
    "llvm.mlir.addressof": global_address,
    "llvm.alloca": frame,
    "llvm.load": load,
    "llvm.intr.masked.load": load_masked,
    "llvm.intr.masked.gather": gather,
    "llvm.atomicrmw": read_modify_write,
    "llvm.extractvalue": extract_value,
    "vector.broadcast": broadcast,
    "vector.extract": extract,
    "vector.from_elements": from_elements,
    "vector.interleave": interleave,
    "vector.reduction": reduction,
    "vector.shuffle": shuffle,
}

STATEMENTS = {
    "llvm.store": store,
    "llvm.intr.masked.store": store_masked,
    "llvm.intr.masked.scatter": scatter,
    "llvm.cmpxchg": compare_and_swap,
}

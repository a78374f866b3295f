"""Memory accesses, atomics, and construction and extraction of vectors, as C++."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.compiler.cpp import arithmetic
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import CppType, parse

_DYNAMIC = -(1 << 31)
_DYNAMIC_POSITION = -(1 << 63)

_ORDERS = {
    1: "__ATOMIC_RELAXED", 2: "__ATOMIC_RELAXED", 4: "__ATOMIC_ACQUIRE", 5: "__ATOMIC_RELEASE",
    6: "__ATOMIC_ACQ_REL", 7: "__ATOMIC_SEQ_CST",
}  # fmt: skip
"""By MLIR's numbers of LLVM's orderings; 0 means not atomic."""

_FETCH = {0: "exchange_n", 1: "fetch_add", 2: "fetch_sub", 3: "fetch_and", 5: "fetch_or", 6: "fetch_xor"}
_UPDATES = {
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
            starts = f"{emitter.function('splat')}<{result.name}>(u64({base}))"
        return f"{starts} + {offsets}"
    if index != _DYNAMIC:
        return f"{base} + {index * size}" if index else base
    literal = emitter.literal_of(rest[0])
    if literal is not None and 0 <= literal < 1 << 31:
        return f"{base} + {literal * size}"
    type = emitter.type_of(operation.operands[1])
    offset = rest[0]
    if type.bits < 64:
        offset = f"u64(i64({arithmetic.signed(emitter, offset, type)}))"
    return f"{emitter.function('at')}({base}, {_scaled(offset, size)})"


def _scaled(offset: str, size: int) -> str:
    return offset if size == 1 else f"{offset} * {size}"


def global_address(emitter: Emitter, operation: Any) -> str:
    """llvm.mlir.addressof."""
    return f"ptr({emitter.text(operation, 'global_name')})"


def frame(emitter: Emitter, operation: Any) -> str:
    """llvm.alloca of a constant number of bytes."""
    count = emitter.literal_of(emitter.operands(operation)[0])
    element = parse(emitter.type_text(operation, "elem_type"))
    if count is None or element is None:
        raise emitter.unsupported(operation, "a frame whose size is not constant")
    name = emitter.fresh("frame")
    emitter.statement(f"alignas(64) char {name}[{count * max(element.bits // 8, 1)}];")
    return name


# --- loads and stores --------------------------------------------------------------------------------------


def _bits_type(type: CppType) -> str:
    return "u8" if type.is_truth else f"u{type.bits}"


def load(emitter: Emitter, operation: Any) -> str:
    (place,) = emitter.operands(operation)
    type = emitter.result_type(operation)
    order = emitter.integer(operation, "ordering", 0)
    is_volatile = emitter.has(operation, "volatile_")
    if not order and not is_volatile:
        return f"{emitter.function('load')}<{type.name}>({place})"
    if type.lanes:
        raise emitter.unsupported(operation, "a volatile or atomic load of a vector")
    bits = _bits_type(type)
    if order:
        value = f"__atomic_load_n(({bits} *){place}, {_ORDERS[order]})"
    else:
        value = f"*(volatile {bits} *){place}"
    return _from_bits(emitter, value, bits, type)


def _from_bits(emitter: Emitter, value: str, bits: str, type: CppType) -> str:
    return value if bits == type.name else f"{emitter.function('as')}<{type.name}>({bits}({value}))"


def _to_bits(emitter: Emitter, value: str, type: CppType) -> str:
    bits = _bits_type(type)
    return value if bits == type.name else f"{emitter.function('as')}<{bits}>({value})"


def store(emitter: Emitter, operation: Any) -> None:
    value, place = emitter.operands(operation)
    type = emitter.type_of(operation.operands[0])
    order = emitter.integer(operation, "ordering", 0)
    is_volatile = emitter.has(operation, "volatile_")
    if not order and not is_volatile:
        emitter.statement(f"{emitter.function('store')}<{type.name}>({place}, {value});")
        return
    if type.lanes:
        raise emitter.unsupported(operation, "a volatile or atomic store of a vector")
    bits, value = _bits_type(type), _to_bits(emitter, value, type)
    if order:
        emitter.statement(f"__atomic_store_n(({bits} *){place}, {value}, {_ORDERS[order]});")
    else:
        emitter.statement(f"*(volatile {bits} *){place} = {value};")


def load_masked(emitter: Emitter, operation: Any) -> str:
    place, mask, *other = emitter.operands(operation)
    type = emitter.result_type(operation)
    return f"{emitter.function('load_masked')}<{type.name}>({place}, {mask}, {_other(emitter, type, other)})"


def _other(emitter: Emitter, type: CppType, given: list[str]) -> str:
    return given[0] if given else f"{type.name}{{}}"


def store_masked(emitter: Emitter, operation: Any) -> None:
    value, place, mask = emitter.operands(operation)
    emitter.statement(f"{emitter.function('store_masked')}({place}, {value}, {mask});")


def gather(emitter: Emitter, operation: Any) -> str:
    places, mask, *other = emitter.operands(operation)
    type = emitter.result_type(operation)
    return f"{emitter.function('gather')}<{type.name}>({places}, {mask}, {_other(emitter, type, other)})"


def scatter(emitter: Emitter, operation: Any) -> None:
    value, places, mask = emitter.operands(operation)
    emitter.statement(f"{emitter.function('scatter')}({value}, {places}, {mask});")


# --- atomics -----------------------------------------------------------------------------------------------


def read_modify_write(emitter: Emitter, operation: Any) -> str:
    place, value = emitter.operands(operation)
    type = emitter.result_type(operation)
    kind = emitter.integer(operation, "bin_op")
    order = _ORDERS[emitter.integer(operation, "ordering")]
    bits = _bits_type(type)
    if kind in _FETCH:
        value = _to_bits(emitter, value, type)
        return _from_bits(
            emitter, f"__atomic_{_FETCH[kind]}(({bits} *){place}, {value}, {order})", bits, type
        )
    if kind not in _UPDATES:
        raise emitter.unsupported(operation, f"the atomic operation {kind}")
    changed = arithmetic.binary(emitter, _UPDATES[kind], "old", value, type)
    body = f"[&]({type.name} old) {{ return {changed}; }}"
    return f"{emitter.function('atomic_update')}<{type.name}, {bits}>({place}, {body}, {order})"


def compare_and_swap(emitter: Emitter, operation: Any) -> None:
    """Two variables: the value found, and whether it was the expected one (see `extract_value`)."""
    place, expected, desired = emitter.operands(operation)
    type = emitter.type_of(operation.operands[1])
    orders = [_ORDERS[emitter.integer(operation, name)] for name in ("success_ordering", "failure_ordering")]
    found, done = emitter.fresh("found"), emitter.fresh("done")
    emitter.statement(f"{type.name} {found} = {expected};")
    call = f"__atomic_compare_exchange_n(({type.name} *){place}, &{found}, {desired}, false, {', '.join(orders)})"
    emitter.statement(f"const bool {done} = {call};")
    emitter.define_parts(operation.results[0], [found, done])


def extract_value(emitter: Emitter, operation: Any) -> str:
    (position,) = emitter.numbers(operation, "position")
    return emitter.parts(operation.operands[0])[position]


# --- vectors -----------------------------------------------------------------------------------------------


def _as_lane(value: str, type: CppType) -> str:
    """A scalar in the lane type of its vector type."""
    if type.is_truth:
        return f"{value} ? -1 : 0"
    return f"u64({value})" if type.element == "ptr" else value


def _of_lane(value: str, mlir_element: CppType) -> str:
    if mlir_element.is_truth:
        return f"{value} != 0"
    return f"ptr({value})" if mlir_element.element == "ptr" else value


def broadcast(emitter: Emitter, operation: Any) -> str:
    (value,) = emitter.operands(operation)
    source = emitter.type_of(operation.operands[0])
    if source.lanes:
        value = f"{value}[0]"
        if source.lanes == emitter.result_type(operation).lanes:
            return emitter.operands(operation)[0]
    else:
        value = _as_lane(value, source)
    return f"{emitter.function('splat')}<{emitter.result_type(operation).name}>({value})"


def extract(emitter: Emitter, operation: Any) -> str:
    vector, *dynamic = emitter.operands(operation)
    (position,) = emitter.numbers(operation, "static_position")
    lane = dynamic[0] if position == _DYNAMIC_POSITION else str(position)
    return _of_lane(f"{vector}[{lane}]", emitter.result_type(operation))


def from_elements(emitter: Emitter, operation: Any) -> str:
    values = emitter.operands(operation)
    element = emitter.type_of(operation.operands[0])
    lanes = ", ".join(_as_lane(value, element) for value in values)
    return f"{emitter.result_type(operation).name}{{{lanes}}}"


def shuffle(emitter: Emitter, operation: Any) -> str:
    """vector.shuffle that extracts adjacent lanes of the first vector, the only kind that the lowering emits."""
    vector = emitter.operands(operation)[0]
    lanes = emitter.numbers(operation, "mask")
    first, last = lanes[0], lanes[-1]
    if list(lanes) != list(range(first, last + 1)) or last >= (
        emitter.type_of(operation.operands[0]).lanes or 1
    ):
        raise emitter.unsupported(operation, "a shuffle of lanes that are not neighbours")
    return f"{emitter.function('slice')}<{emitter.result_type(operation).name}>({vector}, {first})"


def interleave(emitter: Emitter, operation: Any) -> str:
    a, b = emitter.operands(operation)
    type = emitter.result_type(operation)
    if not emitter.type_of(operation.operands[0]).lanes:
        return f"{type.name}{{{a}, {b}}}"
    return f"{emitter.function('interleave')}<{type.name}>({a}, {b})"


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
    scalar = CppType(type.element, type.bits)
    if type.is_truth:
        result = f"{emitter.function('all' if name == 'arith.andi' else 'any')}({vector})"
    else:
        in_order = type.is_float and name in ("arith.addf", "arith.mulf")
        if "reassoc" in str(operation.attributes["fastmath"]) or "fast>" in str(
            operation.attributes["fastmath"]
        ):
            in_order = False
        function = emitter.function("reduce" if in_order else "reduce_pairs")
        body = arithmetic.binary(emitter, name, "a", "b", scalar)
        result = f"{function}([]({scalar.name} a, {scalar.name} b) {{ return {body}; }}, {vector})"
    return arithmetic.binary(emitter, name, start[0], result, scalar) if start else result


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

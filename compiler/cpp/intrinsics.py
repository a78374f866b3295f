"""Calls of intrinsics as C++ against a header: descriptors are structs, and numbers have the header's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton_porting_kit.abi import npu
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.header import NUMBERS, STRUCT, enumerator

_POINTER = f"const {STRUCT} *"
_NUMBERED = {"unit": "unit", "other": "unit", "type": "type", "flags": "flag", "kind": "kind"}
"""What a parameter numbers, by the end of its name."""


def _fields() -> Iterator[tuple[int, str]]:
    offset = 0
    for name, kind, count in npu.TRANSFER:
        step = 8 if kind == "int64_t" else 4
        for index in range(count):
            yield offset, name if count == 1 else f"{name}[{index}]"
            offset += step


_FIELDS = dict(_fields())
"""The fields of a descriptor by their offset in bytes."""


def is_call(operation: Any) -> bool:
    """Whether an operation calls or declares an intrinsic."""
    attribute = {"llvm.call": "callee", "llvm.func": "sym_name"}.get(operation.name)
    return attribute is not None and str(operation.attributes[attribute]).strip('"@') in npu.INTRINSICS


def write(emitter: Emitter, operation: Any) -> bool:
    """Write a call of an intrinsic, or what makes its descriptor; returns whether the operation was one of these."""
    if operation.name == "llvm.call":
        return _call(emitter, operation)
    if operation.name == "llvm.alloca":
        return _descriptor(emitter, operation)
    if operation.name == "llvm.getelementptr":
        return _field(emitter, operation)
    return operation.name == "llvm.store" and _assign(emitter, operation)


def _call(emitter: Emitter, operation: Any) -> bool:
    if not is_call(operation):
        return False
    name = emitter.text(operation, "callee")
    parameters = npu.INTRINSICS[name].parameters
    arguments = [
        _argument(emitter, name, parameter, kind, value)
        for (parameter, kind), value in zip(parameters, emitter.operands(operation), strict=True)
    ]
    text = f"{emitter.intrinsics.name(name)}({', '.join(arguments)})"
    emitter.intrinsics.used = True
    if len(operation.results):
        emitter.declare(operation.results[0], text)
    else:
        emitter.statement(f"{text};")
    return True


def _argument(emitter: Emitter, function: str, parameter: str, kind: str, value: str) -> str:
    if kind == _POINTER:
        return f"&{value}"
    if kind.endswith("*"):
        return f"({kind}){value}"
    number = emitter.literal_of(value)
    if number is None:
        return value
    numbered = _NUMBERED.get(parameter.rpartition("_")[2])
    if numbered == "kind" and function.endswith("atomic"):
        numbered = "atomic"
    return _named(emitter, numbered, number) if numbered else str(number)


def _named(emitter: Emitter, numbered: str, number: int) -> str:
    """A number as the header writes it."""
    names = {value: emitter.intrinsics.name(enumerator(name)) for name, value in NUMBERS[numbered].items()}
    if numbered == "flag":
        return " | ".join(name for value, name in names.items() if value & number) or "0"
    if numbered == "unit" and number > npu.UNITS["dma"]:
        return f"{names[npu.UNITS['dma']]} + {number - npu.UNITS['dma']}"
    return names.get(number, str(number))


def _descriptor(emitter: Emitter, operation: Any) -> bool:
    """A frame that a transfer reads is a variable of the header's struct."""
    result = operation.results[0]
    if not any(is_call(use.owner.operation) for use in result.uses):
        return False
    name = emitter.fresh("transfer")
    emitter.statement(f"{emitter.intrinsics.name(STRUCT)} {name};")
    emitter.define(result, name)
    emitter.intrinsics.descriptors[result] = name
    return True


def _field(emitter: Emitter, operation: Any) -> bool:
    """The address of a field; nothing else has an address in a descriptor."""
    name = emitter.intrinsics.descriptors.get(operation.operands[0])
    if name is None:
        return False
    offset = emitter.literal_of(emitter.operands(operation)[1])
    if offset is None or offset not in _FIELDS:
        raise emitter.unsupported(operation, f"an address {offset} in a descriptor, where no field is")
    emitter.intrinsics.fields[operation.results[0]] = f"{name}.{_FIELDS[offset]}"
    return True


def _assign(emitter: Emitter, operation: Any) -> bool:
    value, place = operation.operands
    field = emitter.intrinsics.fields.get(place)
    if field is None and place in emitter.intrinsics.descriptors:
        field = f"{emitter.intrinsics.descriptors[place]}.{_FIELDS[0]}"
    if field is None:
        return False
    text = emitter.name_of(value)
    number = emitter.literal_of(text)
    emitter.statement(f"{field} = {text if number is None else number};")
    return True

"""Texts and tables of an object file."""

from __future__ import annotations

import ctypes

import pytest
from native_functions import link

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.module_data import ModuleData
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.toolchain import mlir

TEXTS = [
    "",
    "plain",
    'a "quoted" \\ one',
    "100% of %s",
    "two\nlines\t\x7f",
    "größer als π \U0001f600",
    "\\00",
]


def address_of(builder: LoopBuilder, data: ModuleData, value: Value) -> tuple[object, int]:
    """The linked module of a function that returns `value`, and what it returns."""
    builder.line(f"llvm.return {value.name} : !llvm.ptr")
    body = "\n".join(builder.text())
    code = link(
        "module {\n" + "\n".join(data.lines()) + f"\nllvm.func @address() -> !llvm.ptr {{\n{body}\n}}\n}}",
        ["address"],
    )
    return code, ctypes.CFUNCTYPE(ctypes.c_uint64)(code.addresses["address"])()


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_kept_byte_by_byte(text: str) -> None:
    builder = LoopBuilder()
    data = ModuleData(builder)
    code, address = address_of(builder, data, data.text(text))
    assert ctypes.string_at(address) == text.encode()
    del code


def test_texts_cannot_hold_zero_bytes_or_half_characters() -> None:
    builder = LoopBuilder()
    data = ModuleData(builder)
    code, address = address_of(builder, data, data.text("a\0b\ud800c"))
    assert ctypes.string_at(address) == b"ab?c"
    del code


@pytest.mark.parametrize("numbers", [[0], [3, 2, 4, 8], [2**62, -1]])
def test_tables(numbers: list[int]) -> None:
    builder = LoopBuilder()
    data = ModuleData(builder)
    code, address = address_of(builder, data, data.table(numbers))
    assert list((ctypes.c_int64 * len(numbers)).from_address(address)) == numbers
    del code


def test_equal_data_is_there_once() -> None:
    builder = LoopBuilder()
    data = ModuleData(builder)
    assert data.text("a") == data.text("a") != data.text("b")
    assert data.table([1]) == data.table([1]) != data.table([1, 1])
    assert len(data.lines()) == 4


def test_routines_are_declared_once() -> None:
    builder = LoopBuilder()
    data = ModuleData(builder)
    for number in (1, 2):
        data.call("routine", [builder.i64(number), builder.constant(3, "i32")])
    assert data.lines() == ["llvm.func @routine(i64, i32)"]
    calls = "\n".join([*data.lines(), "llvm.func @f() {", *builder.text(), "llvm.return", "}"])
    assert mlir.parse_module(f"module {{\n{calls}\n}}").operation.verify()


def test_a_function_without_data_has_none() -> None:
    assert ModuleData(LoopBuilder()).lines() == []

"""Which waits are redundant, by small programs of the form."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler import artefacts
from triton_porting_kit.compiler.tiles.waits import remove_redundant

HEAD = """
module attributes {tpk.structured = 1 : i32} {
  func.func @kernel(%x: !llvm.ptr) attributes {tpk.kernel} {
    %a = "tpk.npu_buffer"() {memory = "vector", bytes = 64 : i64} : () -> !llvm.ptr
    %b = "tpk.npu_buffer"() {memory = "vector", bytes = 64 : i64} : () -> !llvm.ptr
"""
TAIL = "    return\n  }\n}\n"


def dma(token: str, target: str, unit: str = "dma0") -> str:
    return (
        f'    %{token} = "tpk.npu_dma"(%{target}, %x) {{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, '
        f'shape = array<i64: 16>, element = "f32", direction = "load", unit = "{unit}"}} : '
        "(!llvm.ptr, !llvm.ptr) -> i64\n"
    )


def wait(token: str, unit: str = "dma0") -> str:
    return f'    "tpk.npu_wait"(%{token}) {{unit = "{unit}"}} : (i64) -> ()\n'


def read(value: str, buffer: str) -> str:
    return f'    %{value} = "tpk.npu_read"(%{buffer}) : (!llvm.ptr) -> tensor<16xf32>\n'


def use(value: str, buffer: str) -> str:
    return f'    "tpk.npu_write"(%{buffer}, %{value}) : (!llvm.ptr, tensor<16xf32>) -> ()\n'


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (dma("s", "a") + dma("t", "b") + wait("s") + read("v", "a") + wait("t") + use("v", "b"), ["t"]),
        (dma("t", "b") + dma("s", "a") + wait("s") + read("v", "a") + wait("t") + use("v", "b"), ["s", "t"]),
        (dma("s", "a") + dma("t", "b", "dma1") + wait("s") + wait("t", "dma1") + read("v", "a") + use("v", "b"), ["s", "t"]),
        (dma("s", "a") + dma("t", "b") + wait("s") + read("v", "a") + use("v", "a") + wait("t") + use("v", "b"), ["s", "t"]),
        (dma("s", "a") + wait("s"), []),
    ],
    ids=["earlier", "later", "other unit", "used between", "at the end"],
)  # fmt: skip
def test_waits_that_stay(body: str, left: list[str]) -> None:
    module = artefacts.parse_structured(HEAD + body + TAIL)
    tokens: dict[object, str] = {}
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    starts = [op.operation for op in block.operations if op.operation.name == "tpk.npu_dma"]
    names = [line.split()[0].lstrip("%") for line in body.splitlines() if "npu_dma" in line]
    tokens.update(zip((op.results[0] for op in starts), names, strict=True))
    remove_redundant(module)
    waits = [op.operation for op in block.operations if op.operation.name == "tpk.npu_wait"]
    assert [tokens[op.operands[0]] for op in waits] == left

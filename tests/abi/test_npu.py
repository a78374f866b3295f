"""The table of intrinsics says what the header says, and what a C compiler makes of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from triton_porting_kit.abi import npu
from triton_porting_kit.abi.elements import ELEMENTS
from triton_porting_kit.abi.header import INCLUDE
from triton_porting_kit.chips import Work
from triton_porting_kit.chips.description import FIRST_CHANNEL

HEADER = re.sub(r"/\*.*?\*/", "", (INCLUDE / "tpk_npu.h").read_text(), flags=re.DOTALL)


def test_the_functions_are_those_of_the_header() -> None:
    found = {}
    for result, name, parameters in re.findall(r"^(\w+) (tpk_npu_\w+)\(([^)]*)\);", HEADER, re.M):
        pairs = (re.fullmatch(r"(.*?)(\w+)", part.strip()) for part in parameters.split(","))
        found[name] = npu.Intrinsic(
            tuple((pair[2], pair[1].strip()) for pair in pairs if pair is not None), result
        )
    assert found == npu.INTRINSICS
    assert npu.INTRINSICS["tpk_npu_element_load"].mlir == (("i64", "i32", "i32"), "i64")
    assert npu.INTRINSICS["tpk_npu_dma"].mlir == (("i32", "!llvm.ptr", "i32"), "i64")
    assert npu.INTRINSICS["tpk_npu_wait"].mlir == (("i32", "i64"), None)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("unit", npu.UNITS),
        ("type", npu.TYPES),
        ("flag", npu.FLAGS),
        ("kind", npu.KINDS),
        ("atomic_kind", npu.ATOMICS),
    ],
)
def test_the_numbers_are_those_of_the_header(name: str, numbers: dict[str, int]) -> None:
    found = re.search(rf"enum tpk_npu_{name} \{{([^}}]*)\}}", HEADER)
    assert found is not None
    listed = re.findall(r"TPK_NPU_(\w+) = (\d+)", found[1])
    assert {word.lower(): int(number) for word, number in listed} == numbers


def test_names_are_those_of_elements_and_of_descriptions() -> None:
    assert npu.TYPES.keys() <= ELEMENTS.keys()
    assert [*npu.KINDS] == [kind.value for kind in Work]
    assert npu.UNITS["dma"] == FIRST_CHANNEL


def test_the_fields_of_a_transfer_lie_where_a_compiler_puts_them(tmp_path: Path) -> None:
    offsets, at = [], 0
    for _, kind, count in npu.TRANSFER:
        offsets.append(at)
        at += count * (8 if kind == "int64_t" else 4)
    assert at == npu.TRANSFER_BYTES
    checks = [f"sizeof(tpk_npu_transfer) == {npu.TRANSFER_BYTES}"]
    for (name, kind, count), offset in zip(npu.TRANSFER, offsets, strict=True):
        size = f"sizeof(((tpk_npu_transfer *)0)->{name}) == {count} * sizeof({kind})"
        checks.append(f"offsetof(tpk_npu_transfer, {name}) == {offset} && {size}")
    lines = (f'_Static_assert({check}, "{check}");' for check in checks)
    (tmp_path / "layout.c").write_text("\n".join(["#include <stddef.h>", '#include "tpk_npu.h"', *lines, ""]))
    command = ["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", tmp_path / "layout.c"]
    subprocess.run(command, check=True)

"""Constants as literals: what they are to a compiler of C++ and of C, bit for bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from triton_porting_kit.compiler.cpp import literals
from triton_porting_kit.compiler.cpp.dialects import CPP, C, Dialect
from triton_porting_kit.compiler.cpp.support import Support
from triton_porting_kit.compiler.cpp.types import CppType, parse

CONSTANTS = {
    "i1": ["true", "false"],
    "i8": ["0", "127", "-128", "-1"],
    "i16": ["32767", "-32768", "255"],
    "i32": ["0", "7", "2147483647", "-2147483648", "-1", "0x7F800000"],
    "i64": ["9223372036854775807", "-9223372036854775808", "-65537", "4294967296"],
    "f32": ["0.0", "-0.0", "1.5", "0.1", "3.40282347e+38", "1.4e-45", "0x7F800000", "0xFFC00001", "-2.5e-3"],
    "f64": ["0.1", "-0.0", "5e-324", "1.7976931348623157e308", "0x7FF0000000000000", "0xFFF8000000000001"],
}


def bits_of(type: str, text: str) -> int:
    """The bits that MLIR means by a constant, by NumPy."""
    if type == "i1":
        return int(text == "true")
    size = int(type[1:]) // 8
    if text.startswith("0x"):
        return int(text, 16)
    if type[0] == "f":
        return int.from_bytes(np.array(float(text), f"<f{size}").tobytes(), "little")
    return int(text) % (1 << (8 * size))


COMMANDS = {"cpp": ("c++", "-std=c++17"), "c": ("cc", "-std=c99")}


def run(folder: Path, support: Support, prints: list[str]) -> list[int]:
    """What a program prints: one unsigned number a line."""
    lines = "\n".join(f'  printf("%llu\\n", (unsigned long long)({text}));' for text in prints)
    dialect = support.dialect
    text = "\n".join([dialect.preamble, *support.text])
    source = folder / f"main{dialect.suffix}"
    source.write_text(f"#include <stdio.h>\n{text}\nint main(void) {{\n{lines}\n}}\n")
    command = [*COMMANDS[dialect.name], "-Wno-psabi", str(source), "-o", str(folder / "main")]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def integer(bits: int, lanes: int = 0) -> CppType:
    return CppType(f"u{bits}", bits, lanes)


@pytest.mark.parametrize("dialect", [CPP, C], ids=["cpp", "c"])
def test_scalars(tmp_path: Path, dialect: Dialect) -> None:
    wanted, prints, support = [], [], Support(dialect)
    for mlir, texts in CONSTANTS.items():
        type = parse(mlir)
        assert type is not None
        for text in texts:
            literal = literals.of_attribute(support, type, text if mlir == "i1" else f"{text} : {mlir}")
            wanted.append(bits_of(mlir, text))
            prints.append(
                f"{support.function('as', integer(8 if mlir == 'i1' else type.bits), type)}({literal})"
            )
    assert run(tmp_path, support, prints) == wanted


@pytest.mark.parametrize("dialect", [CPP, C], ids=["cpp", "c"])
def test_vectors(tmp_path: Path, dialect: Dialect) -> None:
    wanted, prints, support = [], [], Support(dialect)
    for mlir, texts in CONSTANTS.items():
        if mlir == "i1":
            continue
        values = (texts * 4)[:4]
        type = parse(f"vector<4x{mlir}>")
        assert type is not None
        function = support.function("as", integer(type.bits, 4), type)
        for body, lanes in ((f"[{', '.join(values)}]", values), (values[1], [values[1]] * 4)):
            literal = literals.of_attribute(support, type, f"dense<{body}> : vector<4x{mlir}>")
            wanted += [bits_of(mlir, lane) for lane in lanes]
            prints += [f"({function}({literal}))[{i}]" for i in range(4)]
    assert run(tmp_path, support, prints) == wanted


def test_masks_have_lanes_that_are_all_set_or_clear(tmp_path: Path) -> None:
    type, support = parse("vector<4xi1>"), Support(CPP)
    assert type is not None
    support.use(type)
    literal = literals.of_attribute(support, type, "dense<[true, false, false, true]> : vector<4xi1>")
    ones = (1 << 64) - 1
    prints = [f"i64(({literal})[{i}])" for i in range(4)]
    prints.append(f"i64(({literals.of_attribute(support, type, 'dense<true> : vector<4xi1>')})[2])")
    assert run(tmp_path, support, prints) == [ones, 0, 0, ones, ones]


def test_zero() -> None:
    zeros = {"i32": "(u32)0", "f32": "0.0f", "!llvm.ptr": "(ptr)0", "vector<4xf64>": "splat_f64x4(0.0)"}
    for mlir, literal in zeros.items():
        type = parse(mlir)
        assert type is not None
        assert literals.zero(Support(CPP), type) == literal


@pytest.mark.parametrize(
    "mlir", ["bf16", "f8E5M2", "vector<4xbf16>", "vector<2x4xf32>", "tensor<4xf32>", "i7"]
)
def test_types_that_no_dialect_has(mlir: str) -> None:
    assert parse(mlir) is None

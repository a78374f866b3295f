"""Constants as C++ literals: what they are to a C++ compiler, bit for bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from triton_porting_kit.compiler.cpp import literals, support
from triton_porting_kit.compiler.cpp.types import parse

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


def run(folder: Path, declarations: str, prints: list[str]) -> list[int]:
    """What a program prints: one unsigned number a line."""
    lines = "\n".join(f'  printf("%llu\\n", (unsigned long long)({text}));' for text in prints)
    source = f"#include <stdio.h>\n{support.PREAMBLE}{declarations}\nint main() {{\n{lines}\n}}\n"
    (folder / "main.cpp").write_text(source)
    command = ["c++", "-std=c++17", "-Wno-psabi", str(folder / "main.cpp"), "-o", str(folder / "main")]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def test_scalars(tmp_path: Path) -> None:
    wanted, prints = [], []
    for mlir, texts in CONSTANTS.items():
        type = parse(mlir)
        assert type is not None
        for text in texts:
            literal = literals.of_attribute(type, text if mlir == "i1" else f"{text} : {mlir}")
            bits = "u8" if mlir == "i1" else f"u{type.bits}"
            wanted.append(bits_of(mlir, text))
            prints.append(f"as<{bits}>({literal})")
    assert run(tmp_path, "\n".join(support.text(["as"])), prints) == wanted


def test_vectors(tmp_path: Path) -> None:
    wanted, prints, types = [], [], set()
    for mlir, texts in CONSTANTS.items():
        if mlir == "i1":
            continue
        values = (texts * 4)[:4]
        type = parse(f"vector<4x{mlir}>")
        assert type is not None
        types |= {
            type.definition,
            f"typedef u{type.bits} u{type.bits}x4 __attribute__((vector_size({type.bits // 2})));",
        }
        for body, lanes in ((f"[{', '.join(values)}]", values), (values[1], [values[1]] * 4)):
            literal = literals.of_attribute(type, f"dense<{body}> : vector<4x{mlir}>")
            wanted += [bits_of(mlir, lane) for lane in lanes]
            prints += [f"(as<u{type.bits}x4>({literal}))[{i}]" for i in range(4)]
    text = "\n".join([*sorted(filter(None, types)), *support.text(["as", "splat"])])
    assert run(tmp_path, text, prints) == wanted


def test_masks_have_lanes_that_are_all_set_or_clear(tmp_path: Path) -> None:
    type = parse("vector<4xi1>")
    assert type is not None
    literal = literals.of_attribute(type, "dense<[true, false, false, true]> : vector<4xi1>")
    ones = (1 << 64) - 1
    text = "\n".join([str(type.definition), *support.text(["splat"])])
    prints = [f"i64(({literal})[{i}])" for i in range(4)]
    prints.append(f"i64(({literals.of_attribute(type, 'dense<true> : vector<4xi1>')})[2])")
    assert run(tmp_path, text, prints) == [ones, 0, 0, ones, ones]


def test_zero() -> None:
    zeros = {
        "i32": "u32(0)",
        "f32": "0.0f",
        "!llvm.ptr": "ptr(nullptr)",
        "vector<4xf64>": "splat<f64x4>(0.0)",
    }
    for mlir, literal in zeros.items():
        type = parse(mlir)
        assert type is not None
        assert literals.zero(type) == literal


@pytest.mark.parametrize(
    "mlir", ["bf16", "f8E5M2", "vector<4xbf16>", "vector<2x4xf32>", "tensor<4xf32>", "i7"]
)
def test_types_that_cpp_has_not(mlir: str) -> None:
    assert parse(mlir) is None

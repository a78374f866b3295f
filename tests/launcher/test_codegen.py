"""The generated source: readable, self-contained, and safe whatever a parameter is called."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import types
from pathlib import Path
from typing import Any

import pytest
from launcher_helpers import RecordingDevice, call

from triton_porting_kit.launcher import (
    ArgLayout,
    BuildOptions,
    GeneratedLauncher,
    RuntimeSymbol,
    Signature,
    generate_source,
)
from triton_porting_kit.launcher.build import build_module
from triton_porting_kit.launcher.codegen.source import MODULE_NAME

TYPES = {
    "x": "*fp32",
    "desc": "tensordesc<fp16[64, 32]>",
    "config": {"scale": "fp32", "shape": ["i32", "constexpr"]},
    "BLOCK": "constexpr",
    "n": "u8",
}


def source_of(types_: Any) -> str:
    layout = ArgLayout.from_signature(Signature.from_types(types_), {"scratch": "*i8"})
    return generate_source(layout)


def test_every_field_is_commented_and_its_offset_asserted() -> None:
    source = source_of(TYPES)
    layout = ArgLayout.from_signature(Signature.from_types(TYPES), {"scratch": "*i8"})
    for slot in layout.slots:
        assert re.search(rf"; +// {re.escape(slot.name)}: {re.escape(slot.type)}\n", source)
    assert re.search(r"; +// scratch: \*i8 \(hidden\)\n", source)
    offsets = re.findall(r"static_assert\(offsetof\(Arguments, \w+\) == (\d+)\);", source)
    assert [int(offset) for offset in offsets] == [slot.offset for slot in (*layout.slots, *layout.hidden)]
    assert f"static_assert(sizeof(Arguments) == {layout.size});" in source


def test_the_same_signature_gives_the_same_source() -> None:
    assert source_of(TYPES) == source_of(dict(TYPES))


def test_includes_nothing_but_python_and_the_standard_library() -> None:
    includes = set(re.findall(r"#include (\S+)", source_of(TYPES)))
    assert includes == {
        *("<Python.h>", "<cstddef>", "<cstdint>", "<cstring>", "<limits>", "<type_traits>", "<vector>")
    }


def test_is_well_formatted(tmp_path: Path) -> None:
    many = {f"argument_{i}": "i64" for i in range(64)}
    for types_ in (TYPES, {}, many):
        source = source_of(types_)
        assert source.endswith("\n")
        assert not source.endswith("\n\n")
        assert all(
            len(line) <= 110 and line == line.rstrip() and "\t" not in line for line in source.split("\n")
        )
        if tool := shutil.which("clang-format"):
            path = tmp_path / "launcher.cpp"
            path.write_text(source)
            style = "{BasedOnStyle: LLVM, IndentWidth: 2, ColumnLimit: 110}"
            command = [tool, f"--style={style}", "--dry-run", "-Werror", str(path)]
            assert subprocess.run(command, check=False).returncode == 0


def test_is_a_module_by_itself() -> None:
    """The launcher compiles what signatures have in common apart; whoever takes the text away need not."""
    device = RecordingDevice()
    layout = ArgLayout.from_signature(Signature.from_types({"x": "*fp32", "n": "i32"}), {"scratch": "*i8"})
    launch = build_module(generate_source(layout), MODULE_NAME).bind(device.function, device.context)
    launch(*(1, 1, 1, 0, 0, None, None, None, None), 64, 5, scratch=8)
    assert device.launches[0].block == struct.pack("<QixxxxQ", 64, 5, 8)


def test_hostile_names_stay_names() -> None:
    device = RecordingDevice()
    names = [
        "class",
        "NULL",
        'a"b\\',
        "a_b",
        "a.b",
        "line\nint main() {}",
        "tail\\",
        "é",
        "ü",
        "*/",
        "?" * 130,
        "x, y",
    ]
    src = types.SimpleNamespace(signature=dict.fromkeys(names, "i32") | {"c\\": "constexpr"}, constants={})
    launcher = GeneratedLauncher(src, None, device)
    call(launcher, *range(len(names)), None)
    assert device.launches[0].block == struct.pack(f"<{len(names)}i", *range(len(names)))
    for i, name in enumerate(names):
        values = [0] * len(names)
        values[i] = 2**40
        with pytest.raises(TypeError) as caught:
            call(launcher, *values, None)
        assert f"argument '{name}' (i32)" in str(caught.value)


def test_launches_through_a_symbol_of_a_runtime(tmp_path: Path) -> None:
    (tmp_path / "vendor.h").write_text(
        "#include <stdint.h>\n"
        'extern "C" int32_t vendor_launch(void *context, uint64_t stream, uint64_t function, uint32_t x,'
        " uint32_t y, uint32_t z, const void *args, uint64_t args_size, char *message, uint64_t size);\n"
    )
    (tmp_path / "vendor.cpp").write_text(
        '#include "vendor.h"\n#include <string.h>\n'
        'extern "C" int32_t vendor_launch(void *context, uint64_t, uint64_t, uint32_t x, uint32_t, uint32_t,'
        " const void *args, uint64_t args_size, char *, uint64_t) {\n"
        "  memcpy(context, args, args_size);\n  return x == 7 ? 1 : 0;\n}\n"
    )
    library = tmp_path / "libvendor.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "vendor.cpp")], check=True)
    import ctypes

    memory = ctypes.create_string_buffer(16)
    entry = types.SimpleNamespace(function=0, context=ctypes.addressof(memory))
    launcher = GeneratedLauncher(
        types.SimpleNamespace(signature={"x": "*i8", "n": "i32"}, constants={}),
        None,
        entry,
        runtime=RuntimeSymbol("vendor_launch", '"vendor.h"'),
        options=BuildOptions(compile_flags=(f"-I{tmp_path}",), link_flags=(str(library),)),
    )
    call(launcher, 64, 5)
    assert memory.raw == struct.pack("<Qixxxx", 64, 5)
    with pytest.raises(MemoryError):
        call(launcher, 64, 5, grid=(7, 1, 1))


@pytest.mark.parametrize(
    ("symbol", "header"), [("a b", "<v.h>"), ("f", "v.h"), ("f", '"v.h"\n#error'), ("f();", "<v.h>")]
)
def test_symbols_are_checked(symbol: str, header: str) -> None:
    with pytest.raises(ValueError, match=r"identifier|must be written"):
        RuntimeSymbol(symbol, header)

"""Shared objects linked here: loaded by the system's own loader, and run."""

from __future__ import annotations

import ctypes
import math
import struct
import subprocess
from pathlib import Path

import pytest

from triton_porting_kit.binaries.shared_object import link_shared_object
from triton_porting_kit.errors import InvalidModule
from triton_porting_kit.toolchain import llvm

AARCH64 = "aarch64-unknown-linux-gnu"

SOURCE = """
@table = internal constant [4 x double] [double 1.5, double 2.5, double -3.0, double 4.0], align 32
@pointers = internal constant [2 x ptr] [ptr @twice, ptr @thrice]
@far = global [2 x ptr] [ptr getelementptr ([4 x double], ptr @table, i64 0, i64 2), ptr @cos]
@counter = internal global i64 0
@cleared = global [100 x i32] zeroinitializer, align 64
@hidden = hidden global i32 5
@answer = constant i32 42

declare double @cos(double)
declare double @fmod(double, double)

define internal i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }
define internal i64 @thrice(i64 %x) { %y = mul i64 %x, 3 ret i64 %y }

define double @entry(i64 %i) {
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %x = load double, ptr %p
  ret double %x
}
define double @outside(double %x) {
  %y = call double @cos(double %x)
  %z = call double @fmod(double %y, double 0.25)
  ret double %z
}
define double @through_pointers() {
  %p = load ptr, ptr @far
  %x = load double, ptr %p
  %q = getelementptr [2 x ptr], ptr @far, i64 0, i64 1
  %f = load ptr, ptr %q
  %y = call double %f(double %x)
  ret double %y
}
define i64 @choose(i64 %which, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %which
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define i32 @sum_cleared() {
  store i32 7, ptr getelementptr ([100 x i32], ptr @cleared, i64 0, i64 99)
  %a = load i32, ptr @cleared
  %b = load i32, ptr getelementptr ([100 x i32], ptr @cleared, i64 0, i64 99)
  %h = load i32, ptr @hidden
  %ab = add i32 %a, %b
  %r = add i32 %ab, %h
  ret i32 %r
}
"""


def compile_object(source: str, triple: str | None = None) -> bytes:
    triple = triple or llvm.host_triple()
    return llvm.emit_object(llvm.parse(source, triple), llvm.target_machine(triple))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "linked.so"
    path.write_bytes(link_shared_object(compile_object(SOURCE), "linked.so"))
    return path


@pytest.fixture(scope="module")
def library(linked: Path) -> ctypes.CDLL:
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    found = ctypes.CDLL(str(linked), mode=ctypes.RTLD_LOCAL)
    for name in ("entry", "outside", "through_pointers"):
        getattr(found, name).restype = ctypes.c_double
    found.choose.restype = found.count.restype = ctypes.c_int64
    return found


def test_constants(library: ctypes.CDLL) -> None:
    assert [library.entry(ctypes.c_int64(i)) for i in range(4)] == [1.5, 2.5, -3.0, 4.0]
    assert ctypes.c_int32.in_dll(library, "answer").value == 42


def test_functions_of_other_libraries(library: ctypes.CDLL) -> None:
    assert library.outside(ctypes.c_double(0.3)) == math.fmod(math.cos(0.3), 0.25)


def test_addresses_in_data(library: ctypes.CDLL) -> None:
    assert library.through_pointers() == math.cos(-3.0)
    assert [library.choose(ctypes.c_int64(k), ctypes.c_int64(5)) for k in (0, 1)] == [10, 15]


def test_variables(library: ctypes.CDLL) -> None:
    assert [library.count() for _ in range(3)] == [1, 2, 3]
    assert library.sum_cleared() == 12


def test_hidden_symbols_stay_hidden(library: ctypes.CDLL) -> None:
    assert hasattr(library, "cleared")
    for name in ("hidden", "table", "twice"):
        with pytest.raises(AttributeError):
            library[name]


def test_a_missing_function_is_the_loader_s_error(tmp_path: Path) -> None:
    source = (
        "declare i32 @no_such_function()\ndefine i32 @f() { %x = call i32 @no_such_function() ret i32 %x }"
    )
    path = tmp_path / "missing.so"
    path.write_bytes(link_shared_object(compile_object(source)))
    with pytest.raises(OSError, match="no_such_function"):
        ctypes.CDLL(str(path))


def test_pages_are_never_writable_and_executable(linked: Path) -> None:
    data = linked.read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    flags = [struct.unpack_from("<II", data, offset + 56 * k) for k in range(count)]
    assert sum(kind == 1 for kind, _ in flags) >= 3
    assert all(not (flag & 1 and flag & 2) for _, flag in flags)


def test_the_same_symbols_as_a_linker(linked: Path, tmp_path: Path) -> None:
    (tmp_path / "source.o").write_bytes(compile_object(SOURCE))
    theirs = tmp_path / "theirs.so"
    subprocess.run(["c++", "-shared", "-o", str(theirs), str(tmp_path / "source.o")], check=True)
    assert exports(linked) >= {"entry", "choose", "answer", "far"}
    assert exports(linked) == {name for name in exports(theirs) if not name.startswith("_")}


def exports(path: Path) -> set[str]:
    """The defined dynamic symbols of a shared object, found by its hash table as a loader would."""
    data = path.read_bytes()
    (segments,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    rows = [struct.unpack_from("<IIQQQQQQ", data, segments + 56 * k) for k in range(count)]

    def offset(address: int) -> int:
        return next(r[2] + address - r[3] for r in rows if r[0] == 1 and r[3] <= address < r[3] + r[5])

    dynamic = next(r for r in rows if r[0] == 2)
    tags = dict(struct.iter_unpack("<qQ", data[dynamic[2] : dynamic[2] + dynamic[5]]))
    symbols, names = offset(tags[6]), offset(tags[5])
    found, at = set(), symbols + 24
    while True:  # the table of symbols has no length of its own: it ends where the names begin, or the hash
        if at + 24 > len(data) or at >= names > symbols:
            break
        name, info, _, place, _, _ = struct.unpack_from("<IBBHQQ", data, at)
        if info >> 4 not in (1, 2):
            break
        text = data[names + name : data.index(b"\0", names + name)].decode()
        if place:
            found.add(text)
        at += 24
    return found


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF" + bytes(100)])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidModule):
        link_shared_object(data)


def test_every_truncation_is_refused_or_whole() -> None:
    data = compile_object(SOURCE)
    for length in range(0, len(data), 97):
        with pytest.raises(InvalidModule):
            link_shared_object(data[:length])


def test_what_is_not_position_independent_is_refused() -> None:
    data = compile_object(SOURCE, "x86_64-unknown-linux-gnu")
    for kind in (10, 11):  # R_X86_64_32, R_X86_64_32S
        changed = bytearray(data)
        patch_relocations(changed, kind)
        with pytest.raises(InvalidModule, match=f"relocation {kind} of x86-64"):
            link_shared_object(bytes(changed))


def patch_relocations(data: bytearray, kind: int) -> None:
    """Give every relocation of an x86-64 object another type."""
    (table,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    for k in range(count):
        fields = struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * k)
        if fields[1] == 4:
            for at in range(fields[4], fields[4] + fields[5], 24):
                struct.pack_into("<I", data, at + 8, kind)


def test_aarch64_addresses() -> None:
    """Where two instructions and a call lead, decoded by the architecture's manual."""
    source = """
@value = constant i64 77, align 8
declare i64 @elsewhere(i64)
define internal i64 @near(i64 %x) noinline { %y = add i64 %x, 1 ret i64 %y }
define i64 @f() {
  %x = load i64, ptr @value
  %y = call i64 @near(i64 %x)
  %z = call i64 @elsewhere(i64 %y)
  ret i64 %z
}
"""
    data = link_shared_object(compile_object(source, AARCH64))
    (machine,) = struct.unpack_from("<H", data, 18)
    assert machine == 183
    words = struct.unpack_from(f"<{len(data) // 4}I", data)
    led = set()
    for index, word in enumerate(words):
        if word & 0x9F000000 == 0x90000000 and index + 1 < len(words):  # adrp, then ldr or add
            pages = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            pages -= (pages & 0x100000) << 1
            page = (index * 4 & ~0xFFF) + pages * 4096
            for later in words[index + 1 : index + 4]:
                if later & 0xFFC00000 == 0xF9400000:
                    led.add(page + (later >> 10 & 0xFFF) * 8)
    values = [relative_relocations(data)[at] for at in led if at in relative_relocations(data)]
    assert [struct.unpack_from("<q", data, value)[0] for value in values] == [77]
    calls = [
        i * 4 + ((w & 0x3FFFFFF) - ((w & 0x2000000) << 1)) * 4 for i, w in enumerate(words) if w >> 26 == 0x25
    ]
    assert len(calls) >= 2
    starts = {struct.unpack_from("<I", data, c)[0] for c in calls}
    assert any(start & 0x9F00001F == 0x90000010 for start in starts), (
        "the call of elsewhere goes through a jump"
    )


def relative_relocations(data: bytes) -> dict[int, int]:
    """The places that hold an address, and which (R_AARCH64_RELATIVE)."""
    entries = (struct.unpack_from("<QQq", data, at) for at in range(0, len(data) - 24, 8))
    return {place: addend for place, info, addend in entries if info == 1027}

"""The program of a `Guest`: machine code, LLVM IR and ELF, for each architecture that it runs on.

It has no C library. It maps the memory that it shares with its host, and then does as it is told, in messages of ten
words that lie at the beginning of that memory: first what, then with what.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from triton_porting_kit.binaries import elf_relocations
from triton_porting_kit.compiler import CpuTarget, link_shared_object
from triton_porting_kit.toolchain import llvm

BASE, SIZE = 0x2000000000, 1 << 33
"""Where the guest has the shared memory, and its bytes."""
CODE = BASE + (64 << 20)
"""The stack ends there, and code begins."""
CALL, PROTECT, ANSWER = 0, 1, 2
"""What a host asks for: (function, arguments, scratch, begin, end, x, y, z); (address, size, access); (result,)."""
_SERVICE = BASE + 128  # where the program leaves the address of its routine of that name

_MACHINES = {
    # mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9; mov r9, [rsp + 8]; syscall; ret
    # mov rsp, rdi; call rsi; ud2
    "x86_64": {
        "system": "4889f8 4889f7 4889d6 4889ca 4d89c2 4d89c8 4c8b4c2408 0f05 c3",
        "begin": "4889fc ffd6 0f0b",
        "mmap": 9, "mprotect": 10, "read": 0, "write": 1, "exit": 231,
    },
    # mov x8, x0; mov x0, x1; ... mov x5, x6; svc #0; ret
    # mov sp, x0; blr x1; brk #0
    "aarch64": {
        "system": "e80300aa e00301aa e10302aa e20303aa e30304aa e40305aa e50306aa 010000d4 c0035fd6",
        "begin": "1f000091 20003fd6 000020d4",
        "mmap": 222, "mprotect": 226, "read": 63, "write": 64, "exit": 94,
    },
}  # fmt: skip
"""What LLVM IR cannot say: machine code that calls Linux, and that goes on with another stack; numbers of Linux's calls.

They are prologues of functions. llvmlite has no assembler for other machines, so they cannot be inline assembly."""

_RUNNER = """
define internal i64 @system(i64 %n, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f) noinline nounwind prologue [@SYSTEM_BYTES@ x i8] c"@SYSTEM_CODE@" {
  unreachable
}
define internal void @begin(i64 %stack, ptr %function) noinline nounwind prologue [@BEGIN_BYTES@ x i8] c"@BEGIN_CODE@" {
  unreachable
}
define void @_start() "stackrealign" {
  %r = call i64 @system(i64 @mmap@, i64 @BASE@, i64 @SIZE@, i64 7, i64 17, i64 @FILE@, i64 0)
  call void @begin(i64 @STACK@, ptr @serve)
  unreachable
}
; Tells the host something, and waits for what it wants next.
define internal i64 @next() noinline {
  %told = call i64 @system(i64 @write@, i64 1, i64 @BASE@, i64 80, i64 0, i64 0, i64 0)
  %got = call i64 @system(i64 @read@, i64 0, i64 @BASE@, i64 80, i64 0, i64 0, i64 0)
  %all = icmp eq i64 %got, 80
  br i1 %all, label %asked, label %over
over:
  %gone = call i64 @system(i64 @exit@, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
  unreachable
asked:
  %kind = load volatile i64, ptr inttoptr (i64 @BASE@ to ptr)
  ret i64 %kind
}
; What kernels reach through their imports: which one, and its arguments as registers have them.
define internal i64 @service(i64 %which, ptr %arguments) {
  store volatile i64 %which, ptr inttoptr (i64 @BASE@ to ptr)
@KEEP@
  %kind = call i64 @next()
  %r = load volatile i64, ptr inttoptr (i64 @WORD1@ to ptr)
  ret i64 %r
}
define internal void @serve() {
  store volatile i64 -1, ptr inttoptr (i64 @BASE@ to ptr)
  store volatile ptr @service, ptr inttoptr (i64 @SERVICE@ to ptr)
  br label %again
again:
  %kind = call i64 @next()
  %a = load volatile i64, ptr inttoptr (i64 @WORD1@ to ptr)
  %b = load volatile i64, ptr inttoptr (i64 @WORD2@ to ptr)
  %c = load volatile i64, ptr inttoptr (i64 @WORD3@ to ptr)
  %d = load volatile i64, ptr inttoptr (i64 @WORD4@ to ptr)
  %e = load volatile i64, ptr inttoptr (i64 @WORD5@ to ptr)
  %x = load volatile i64, ptr inttoptr (i64 @WORD6@ to ptr)
  %y = load volatile i64, ptr inttoptr (i64 @WORD7@ to ptr)
  %z = load volatile i64, ptr inttoptr (i64 @WORD8@ to ptr)
  %gx = trunc i64 %x to i32
  %gy = trunc i64 %y to i32
  %gz = trunc i64 %z to i32
  %calls = icmp eq i64 %kind, 0
  br i1 %calls, label %kernel, label %protect
kernel:
  %f = inttoptr i64 %a to ptr
  %p = inttoptr i64 %b to ptr
  %s = inttoptr i64 %c to ptr
  %code = call i32 %f(ptr %p, ptr %s, i64 %d, i64 %e, i32 %gx, i32 %gy, i32 %gz)
  %k = sext i32 %code to i64
  br label %done
protect:
  %q = call i64 @system(i64 @mprotect@, i64 %a, i64 %b, i64 %c, i64 0, i64 0, i64 0)
  br label %done
done:
  %r = phi i64 [ %k, %kernel ], [ %q, %protect ]
  store volatile i64 -1, ptr inttoptr (i64 @BASE@ to ptr)
  store volatile i64 %r, ptr inttoptr (i64 @WORD1@ to ptr)
  br label %again
}
"""

_STUB = """
define i64 @{name}(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %a4, i64 %a5, i64 %a6, i64 %a7) {{
  %p = alloca [8 x i64], align 8
{stores}
  %f = load volatile ptr, ptr inttoptr (i64 {service} to ptr)
  %r = call i64 %f(i64 {which}, ptr %p)
  ret i64 %r
}}
"""

_FLOAT_STUB = """
define {type} @{name}({parameters}) {{
  %p = alloca [8 x i64], align 8
{stores}
  %f = load volatile ptr, ptr inttoptr (i64 {service} to ptr)
  %r = call i64 %f(i64 {which}, ptr %p)
  store i64 %r, ptr %p
  %v = load {type}, ptr %p
  ret {type} %v
}}
"""

FLOATS = {"fma": 3, "fmod": 2}
"""Functions of the C library, which LLVM calls where a level has no instruction: how many floats they take.

A service of that name is given the bits of doubles, and with an f behind the name those of floats."""


def compile_object(source: str, target: CpuTarget) -> bytes:
    """A relocatable object of LLVM IR."""
    machine = llvm.target_machine(target.triple, target.cpu, target.feature_string)
    return llvm.emit_object(llvm.parse(source, target.triple), machine)


def program(target: CpuTarget, file: int) -> bytes:
    """An executable, which finds the shared memory in the descriptor `file`: a shared object that begins at ``_start``."""
    values = dict(_MACHINES[target.triple.partition("-")[0]])
    for name in ("system", "begin"):
        code = bytes.fromhex(str(values.pop(name)))
        values[f"{name.upper()}_BYTES"] = len(code)
        values[f"{name.upper()}_CODE"] = "".join(f"\\{byte:02x}" for byte in code)
    values["KEEP"] = "\n".join(
        f"  %p{k} = getelementptr i64, ptr %arguments, i64 {k}\n  %a{k} = load i64, ptr %p{k}\n"
        f"  store volatile i64 %a{k}, ptr inttoptr (i64 {BASE + 8 * (k + 1)} to ptr)"
        for k in range(8)
    )
    values |= {f"WORD{k}": BASE + 8 * k for k in range(1, 10)}
    values |= {"BASE": BASE, "SIZE": SIZE, "STACK": CODE, "SERVICE": _SERVICE, "FILE": file}
    source = _RUNNER
    for name, value in values.items():
        source = source.replace(f"@{name}@", str(value))
    image = bytearray(link_shared_object(compile_object(source, target), "runner"))
    struct.pack_into("<Q", image, 24, symbols(bytes(image))["_start"][1])
    return bytes(image)


def stub(name: str, which: int, target: CpuTarget) -> bytes:
    """An object that defines a routine of the host: it asks for the service of that number."""
    return compile_object(
        (_float_stub if name.removesuffix("f") in FLOATS else _integer_stub)(name, which), target
    )


def _integer_stub(name: str, which: int) -> str:
    """A routine whose arguments are pointers and integers, of which it passes on eight."""
    stores = "\n".join(
        f"  %p{k} = getelementptr i64, ptr %p, i64 {k}\n  store i64 %a{k}, ptr %p{k}" for k in range(8)
    )
    return _STUB.format(name=name, stores=stores, service=_SERVICE, which=which)


def _float_stub(name: str, which: int) -> str:
    type = "float" if name.endswith("f") else "double"
    count = FLOATS[name.removesuffix("f")]
    stores = "\n".join(
        f"  %p{k} = getelementptr i64, ptr %p, i64 {k}\n  store {type} %a{k}, ptr %p{k}" for k in range(count)
    )
    parameters = ", ".join(f"{type} %a{k}" for k in range(count))
    return _FLOAT_STUB.format(
        name=name, type=type, parameters=parameters, stores=stores, service=_SERVICE, which=which
    )


def relocations(shared: bytes) -> Iterator[tuple[int, str, int]]:
    """Of a shared object: the place of an address, the symbol that it is of (empty: none), and what is added to it."""
    dynamic, names = _dynamic(shared), list(symbols(shared))
    kinds = elf_relocations.machine(struct.unpack_from("<H", shared, 18)[0])
    for offset in range(dynamic[7], dynamic[7] + dynamic[8], 24):
        place, info, addend = struct.unpack_from("<QQq", shared, offset)
        yield place, "" if info & 0xFFFFFFFF == kinds.relative else names[(info >> 32) - 1], addend


def _dynamic(shared: bytes) -> dict[int, int]:
    """The entries of the dynamic section; offsets in the file are addresses."""
    header, count = struct.unpack_from("<Q", shared, 32)[0], struct.unpack_from("<H", shared, 56)[0]
    found = {}
    for k in range(count):
        kind, _, at, _, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", shared, header + 56 * k)
        if kind == 2:
            for entry in range(at, at + size, 16):
                tag, value = struct.unpack_from("<qQ", shared, entry)
                found[tag] = value
    return found


def symbols(shared: bytes) -> dict[str, tuple[int, int]]:
    """Dynamic symbols in their order: section (0 where it is imported) and value."""
    dynamic = _dynamic(shared)
    found = {}
    for at in range(dynamic[6] + 24, dynamic[5], 24):
        name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", shared, at)
        start = dynamic[5] + name
        text = shared[start : shared.index(b"\0", start)].decode()
        if text:
            found[text] = (section, value)
    return found

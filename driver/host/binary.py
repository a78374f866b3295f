"""Kernels for the host CPU: the symbols that an object file exports, and linking it into the process."""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

from triton_porting_kit.abi import kernel as abi
from triton_porting_kit.binaries.elf import read_object
from triton_porting_kit.driver.host import _host
from triton_porting_kit.errors import InvalidModule
from triton_porting_kit.toolchain.llvm import LinkedObject

SCRATCH_LIMIT = 1 << 30

_TABLE = "a table of 32-bit integers"


@dataclass(frozen=True)
class Binary:
    """A linked object and its only kernel; sizes are in bytes. See the kernel ABI in docs/architecture.md."""

    code: LinkedObject
    entry: int
    code_bytes: int
    scratch_bytes: int
    cleared_bytes: int
    argument_bytes: int
    """Bytes of the argument block of a kernel in checked mode; else 0, because the object does not say."""
    exclusive_at: int | None
    """The offset in scratch at which the kernel is told whether it may update memory without locks; -1: nowhere; None:
    it has no atomic operations."""
    stripes_at: int
    """The offset in scratch at which the kernel is told the address of the locks of stripes; -1: nowhere."""
    program_at: int
    """The offset in scratch at which the kernel stores the number of the running program; -1: nowhere."""
    pointers: list[int]
    """The offsets of pointers in the argument block."""
    may_be_left: bool
    """Whether the kernel calls a routine that may end it."""


def link(binary: bytes, name: str) -> Binary:
    """Link the object of kernel `name`. Raises `InvalidModule` for a bad object, or one for another kernel ABI."""
    made = read_object(binary, platform.machine())
    symbols = {symbol.name: symbol for symbol in made.symbols if symbol.section}
    required = (name, name + abi.SCRATCH, abi.VERSION_SYMBOL)
    if missing := set(required) - symbols.keys():
        raise InvalidModule(f"it does not define {', '.join(sorted(missing))}")

    def numbers(symbol: str, form: str, otherwise: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The content of a symbol. Reading the file is faster than asking the linker for addresses."""
        if symbol not in symbols:
            return otherwise
        found = symbols[symbol]
        if not 0 < found.section < len(made.sections):
            raise InvalidModule(f"its symbol {symbol} is not data")
        content = made.sections[found.section].content
        size = struct.calcsize(form) if form != _TABLE else found.size
        data = content[found.value : found.value + size]
        if len(data) < size or size % 4:
            raise InvalidModule(f"its symbol {symbol} has {len(data)} bytes")
        return struct.unpack(form if form != _TABLE else f"<{size // 4}i", data)

    (version,) = numbers(abi.VERSION_SYMBOL, "<i")
    if version != abi.VERSION:
        raise InvalidModule(f"it was made for kernel ABI {version}, this device runs {abi.VERSION}")
    scratch, cleared = numbers(required[1], "<qq")
    if not 0 <= scratch <= SCRATCH_LIMIT:
        raise InvalidModule(f"it asks for {scratch} bytes of scratch, the limit is {SCRATCH_LIMIT}")
    if not 0 <= cleared <= scratch:
        raise InvalidModule(f"it wants {cleared} of {scratch} bytes of scratch to be cleared")
    (program_at,) = numbers(name + abi.PROGRAM, "<q", (-1,))
    has_updates = name + abi.EXCLUSIVE in symbols
    (exclusive_at,) = numbers(name + abi.EXCLUSIVE, "<q", (-1,))
    (stripes_at,) = numbers(name + abi.STRIPES, "<q", (-1,))
    for at in (program_at, exclusive_at, stripes_at):
        if not (at == -1 or 0 <= at <= scratch - 8):
            raise InvalidModule(f"it keeps a number at byte {at} of {scratch} bytes of scratch")
    (argument_bytes,) = numbers(name + abi.ARGUMENT_BYTES, "<q", (0,))
    table = numbers(name + abi.POINTERS, _TABLE, (0,))
    pointers = [*table[1:]]
    if not table or table[0] != len(pointers) or any(at < 0 for at in pointers):
        raise InvalidModule(f"its table of pointers is {list(table)}, not a count and as many offsets")
    code = LinkedObject(binary, [name], _imports(binary))
    return Binary(
        code,
        code.addresses[name],
        symbols[name].size,
        scratch,
        cleared,
        argument_bytes,
        exclusive_at if has_updates else None,
        stripes_at,
        program_at,
        pointers,
        # Only kernels that call these routines end by a long jump. An object names the routines that it calls.
        may_be_left=any(routine.encode() in binary for routine in (abi.FAIL, abi.ACCESS)),
    )


def _imports(binary: bytes) -> dict[str, int]:
    """The host routines that an object may call. There are many mathematical ones, and most kernels call none."""
    if abi.MATHEMATICS.encode() not in binary:
        return _host.services
    called = {name: address for name, address in _host.functions.items() if name.encode() in binary}
    return {**_host.services, **called}

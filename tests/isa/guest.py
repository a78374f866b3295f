"""A process that runs kernels of any architecture: natively, or under QEMU's user mode where the host has another CPU.

The process is a freestanding program, LLVM IR that the kit compiles and links: no cross compiler and no C library takes
part. All memory of kernels is one region, which this process and that one share: the guest has it at `BASE`, the
host wherever it is mapped. Objects are relocated here and only jumped to there. What a kernel does to its process ends
that one only, as `GuestDied`; memory stays as it was, and the next call starts another.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import select
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import guest_program
from guest_program import ANSWER, BASE, CALL, CODE, PROTECT, SIZE

from triton_porting_kit.compiler import CpuTarget, IsaLevel, link_shared_object

PAGE = mmap.PAGESIZE
_DATA = BASE + (4 << 30)
_PATIENCE = 120.0
_MESSAGE = struct.Struct("<10q")

EMULATORS = {"aarch64": "qemu-aarch64"}
"""What runs programs of an architecture on hosts of others."""

Service = Callable[["Guest", tuple[int, ...]], int]
"""A routine of the host that kernels call: the guest, and eight arguments as integers; its result."""


class GuestDied(Exception):
    """The process of the guest ended in a call; the message has the signal."""


def cannot_run(level: IsaLevel) -> str:
    """What keeps a level from running here, under an emulator or without; empty: nothing."""
    lacks = level.missing()
    if lacks != {level.arch}:
        return f"this CPU lacks {', '.join(sorted(lacks))}" if lacks else ""
    try:
        emulator(level.arch)
    except FileNotFoundError as error:
        return str(error)
    return ""


def emulator(arch: str) -> list[str]:
    """What starts a program of an architecture here. Raises FileNotFoundError, which says what is missing."""
    if platform.machine() == arch:
        return []
    name = EMULATORS.get(arch)
    found = name and shutil.which(name)
    if not found:
        raise FileNotFoundError(f"{name or f'an emulator of {arch}'} is not installed (Debian: qemu-user)")
    return [found]


class Guest:
    """Kernels of `target`'s architecture in a process of their own, with what they call of the host in `services`."""

    def __init__(self, target: CpuTarget, services: Mapping[str, Service] | None = None) -> None:
        self.target = target
        self._command = emulator(target.triple.partition("-")[0])
        self._services = dict(services or {})
        self._names = list(self._services)
        self._file = os.memfd_create("guest")
        os.ftruncate(self._file, SIZE)
        self._memory = mmap.mmap(self._file, SIZE)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._folder = tempfile.TemporaryDirectory(prefix="guest-")
        self._program = Path(self._folder.name, "runner")
        self._program.write_bytes(guest_program.program(target, self._file))
        self._program.chmod(0o700)
        self._process: subprocess.Popen[bytes] | None = None
        self._next_code, self._next_data = CODE, _DATA
        self._stubs: dict[str, int] = {}
        self._protected: dict[int, tuple[int, int]] = {}

    # --- memory ------------------------------------------------------------------------------------------

    def allocate(self, size: int, alignment: int = 64) -> int:
        """An address of `size` bytes that no other allocation has."""
        start = self._next_data + -self._next_data % alignment
        self._next_data = start + size
        if self._next_data > BASE + SIZE:
            raise MemoryError("the guest's memory is used up")
        return start

    def view(self, address: int, size: int) -> memoryview:
        """Bytes of the guest's memory, which may be written to."""
        if not BASE <= address <= address + size <= BASE + SIZE:
            raise ValueError(f"{size} bytes at {address:#x} are not in the guest's memory")
        return memoryview(self._memory)[address - BASE : address - BASE + size]

    def host_pointer(self, address: int) -> int:
        """Where this process sees an address of the guest; NULL stays NULL."""
        return self._address + address - BASE if address else 0

    def protect(self, address: int, size: int, access: int) -> None:
        """Let the guest's kernels read (1) or write (2) whole pages, or neither (0)."""
        self._protected[address] = (size, access)
        if self._process is not None:
            self._protect(address, size, access)

    # --- code --------------------------------------------------------------------------------------------

    def load(self, data: bytes) -> dict[str, int]:
        """The addresses of all symbols of a relocatable object."""
        self._start()
        symbols, image = self._relocated(link_shared_object(data))
        for at in range(0, len(image), PAGE):  # most are gaps between what has other permissions
            page = image[at : at + PAGE]
            if any(page):
                self.view(self._next_code + at, len(page))[:] = page
        self._next_code += len(image) + -len(image) % 0x10000
        if self._next_code > _DATA:
            raise MemoryError("the guest's memory for code is used up")
        return symbols

    def call(
        self,
        function: int,
        arguments: int,
        scratch: int = 0,
        programs: tuple[int, int] = (0, 1),
        grid: tuple[int, int, int] = (1, 1, 1),
    ) -> int:
        """Call a kernel by the kernel ABI: its result. Raises `GuestDied`."""
        return self._ask(CALL, function, arguments, scratch, *programs, *grid)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        os.close(self._file)
        self._folder.cleanup()

    # --- the process -------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._process is not None:
            return

        self._process = subprocess.Popen(
            [*self._command, str(self._program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._file,),
        )
        self._answer()
        for address, (size, access) in self._protected.items():
            self._protect(address, size, access)

    def _protect(self, address: int, size: int, access: int) -> None:
        if error := self._ask(PROTECT, address, size, access):
            raise OSError(-error, f"mprotect of {size} bytes at {address:#x}: {os.strerror(-error)}")

    def _ask(self, *words: int) -> int:
        self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(_MESSAGE.pack(*words, *[0] * (10 - len(words))))
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> int:
        """Wait for the result of a call, and do what it asks for meanwhile."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            ready, _, _ = select.select([process.stdout], [], [], _PATIENCE)
            message = os.read(process.stdout.fileno(), _MESSAGE.size) if ready else b""
            if len(message) < _MESSAGE.size:
                self.close()
                raise GuestDied(
                    self._cause(process.returncode) if ready else f"no answer for {_PATIENCE:.0f} s"
                )
            which, *arguments = _MESSAGE.unpack(message)
            if which < 0:
                return int(arguments[0])
            try:
                result = self._services[self._names[which]](self, tuple(arguments))
            except BaseException:
                self.close()  # the kernel is left where it is
                raise
            process.stdin.write(_MESSAGE.pack(ANSWER, result, *[0] * 8))
            process.stdin.flush()

    @staticmethod
    def _cause(code: int) -> str:
        if code == -signal.SIGKILL:
            return "the process ended"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    # --- linking -----------------------------------------------------------------------------------------

    def _relocated(self, shared: bytes) -> tuple[dict[str, int], bytes]:
        """Exported symbols of a shared object, and its image as it lies at the next free place of code."""
        base, image = self._next_code, bytearray(shared)
        symbols = guest_program.symbols(shared)
        for place, name, addend in guest_program.relocations(shared):
            section, value = symbols[name] if name else (1, 0)
            address = base + value if section else self._imported(name)
            struct.pack_into("<Q", image, place, address + addend)
        if self._next_code != base:  # routines that it calls have been loaded meanwhile
            return self._relocated(shared)
        return {name: base + value for name, (section, value) in symbols.items() if section}, bytes(image)

    def _imported(self, name: str) -> int:
        """The address of a routine of the host, as the guest calls it."""
        if name not in self._stubs:
            if name not in self._services:
                raise LookupError(f"the kernel calls {name}, which is not there")
            data = guest_program.stub(name, self._names.index(name), self.target)
            self._stubs[name] = self.load(data)[name]
        return self._stubs[name]

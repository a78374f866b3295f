"""LLVM through llvmlite, which no other module imports.

Code generation for a named CPU or the host's, and linking of relocatable objects into this process. No C compiler,
assembler or linker program is needed.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from triton_porting_kit.errors import InvalidModule, ToolchainError


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


def version() -> str:
    """The releases of llvmlite and of its LLVM, e.g. ``0.50.0 (LLVM 22.1.0)``."""
    import llvmlite

    return f"{llvmlite.__version__} (LLVM {'.'.join(map(str, llvm.llvm_version_info))})"


def host_features() -> dict[str, bool]:
    """Every feature of the host's architecture that LLVM knows (``avx512f``, ``neon``, ...), and whether it is
    there."""
    return dict(llvm.get_host_cpu_features())


def host_triple() -> str:
    """The triple of this process, e.g. ``x86_64-unknown-linux-gnu``."""
    return str(llvm.get_process_triple())


_HELP = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(features="+help")
"""


def known_features(triple: str) -> frozenset[str]:
    """Every feature of a triple's architecture that LLVM knows, from the help that LLVM prints.

    A process of its own prints it: LLVM writes to the standard error of the process. Empty if there is no such text.
    """
    printed = subprocess.run(
        [sys.executable, "-c", _HELP, triple], capture_output=True, text=True, check=False
    ).stderr
    return frozenset(re.findall(r"^  (\S+) +- ", printed.partition("Available features")[2], re.MULTILINE))


class LinkedObject:
    """A relocatable object linked into this process; the code lives as long as this object.

    Symbols that it does not define are taken from `imports`, by address, or else from this process. Raises
    `InvalidModule` if LLVM cannot link `data`, or a symbol in `exports` is missing.
    """

    def __init__(self, data: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None) -> None:
        exports = list(exports)
        builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        try:
            self._library = builder.link(_linker(), f"object-{next(_library_numbers)}")
            self.addresses = {name: self._library[name] for name in exports}
        except (RuntimeError, KeyError) as error:
            raise InvalidModule(f"the object file cannot be linked into this process: {error}") from error


# LLVM remembers the name of a library that failed to link, so names are never reused.
_library_numbers = itertools.count()


@functools.cache
def _linker() -> llvm.orcjit.LLJIT:
    _initialize()
    return llvm.create_lljit_compiler(use_jit_link=True)


class _Machines(threading.local):
    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], llvm.TargetMachine] = {}


_machines = _Machines()
_ON_X86 = host_triple().startswith("x86_64")


def target_machine(triple: str | None = None, cpu: str = "", features: str = "") -> llvm.TargetMachine:
    """A code generator for `triple` (the host's by default), `cpu` and an LLVM feature string (``+a,-b``).

    It is cached per thread, because its tables of the CPU's instructions are expensive. Raises `ToolchainError` for a
    triple that this LLVM does not know.
    """
    key = (triple or host_triple(), cpu, features)
    if key not in _machines.known:
        _machines.known[key] = _new_machine(*key)
    return _machines.known[key]


def _new_machine(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    _initialize()
    if triple != host_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise ToolchainError(f"this LLVM cannot generate code for {triple}: {error}") from error
    # Level 2 would also branch around each 64-bit division that a 32-bit one can do, and schedule again after registers
    # are allocated. That takes 2 % more instructions to compile, 8 % for products, and kernels are no faster on Zen 4.
    return target.create_target_machine(
        cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small", jit=False
    )


def parse(llvm_ir: str, triple: str) -> llvm.ModuleRef:
    """A verified LLVM module for `triple`. Raises RuntimeError with LLVM's message."""
    _initialize()
    module = llvm.parse_assembly(llvm_ir)
    module.triple = triple
    module.verify()
    return module


def emit_object(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
    """A relocatable object of `module`, which gets the machine's data layout."""
    module.data_layout = str(machine.target_data)
    with _without_passes:
        return bytes(machine.emit_object(module))


def emit_assembly(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> str:
    """Assembly text of `module`."""
    module.data_layout = str(machine.target_data)
    with _without_passes:
        return str(machine.emit_assembly(module))


_LEFT_OUT = {
    "disable-lsr": True,
    "disable-constant-hoisting": True,
    "disable-copyprop": True,
    "disable-machine-dce": True,
    "disable-ssc": True,
    "disable-early-taildup": True,
    "disable-tail-duplicate": True,
    "disable-cgp-branch-opts": True,
    "disable-cgp-select2branch": True,
    **({"fixup-byte-word-insts": False} if _ON_X86 else {}),
}
"""Switches that leave out passes of the code generator, which take time and find nothing in what the lowering writes.

Loop strength reduction takes a quarter of the time, to find addresses that are written as a base and one index. The
others take 4 % of the rest: constants are vectors or small, few copies are left and no dead instructions, spilled
values need not share stack slots (`ssc`), branches are those of loops, and single bytes are rare. Two that take as much
are worth it: without elimination of common subexpressions attention takes 3 % longer, and without the combiner products
of bf16 by AVX2.
"""


def _switches(*, leave_out: bool) -> list[str]:
    return [f"-{name}={str(value == leave_out).lower()}" for name, value in _LEFT_OUT.items()]


def _set_options(options: Iterable[str]) -> None:
    """Give options to LLVM as of a command line.

    Each call of LLVM looks at all options that there are, for 0.1 ms. So it reads them from a file of arguments, where
    one can be written. LLVM ends the process if it does not find the file: llvmlite passes the name on in Latin-1.
    """
    try:
        with tempfile.NamedTemporaryFile("w", prefix="tpk-llvm-") as file:
            if file.name.isascii():
                file.write("\n".join(options))
                file.flush()
                llvm.set_option("", f"@{file.name}")
                return
    except OSError:
        pass
    for option in options:
        llvm.set_option("", option)


class _WithoutPasses:
    """While any thread is in this context, LLVM generates code without the passes that are `_LEFT_OUT`.

    Switches apply to the process. For other users of llvmlite, the passes are on again, which is the default, as soon
    as no thread is in the context.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                _set_options(_switches(leave_out=True))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _set_options(_switches(leave_out=False))

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        if child and self._inside:  # the threads that were inside are the parent's
            self._inside = 0
            # One by one: a file would take locks of `tempfile`, which another thread of the parent may hold.
            for option in _switches(leave_out=False):
                llvm.set_option("", option)
        self._lock.release()


_without_passes = _WithoutPasses()


def _before_fork() -> None:
    _without_passes.before_fork()
    ffi.lib._lock.__enter__()


def _after_fork(*, child: bool) -> None:
    ffi.lib._lock.__exit__()
    _without_passes.after_fork(child=child)


# A forked child inherits locks that other threads of its parent hold, and nothing releases them. So no thread may be in
# LLVM when the process forks; llvmlite holds a lock during each of its calls. Calls of MLIR hold the GIL, which the
# forking thread has, or work on a context of their own thread.
os.register_at_fork(
    before=_before_fork,
    after_in_parent=functools.partial(_after_fork, child=False),
    after_in_child=functools.partial(_after_fork, child=True),
)


def host_cpu() -> str:
    """LLVM's name for the host CPU. Under a hypervisor it is often that of a much older one."""
    return str(llvm.get_host_cpu_name())

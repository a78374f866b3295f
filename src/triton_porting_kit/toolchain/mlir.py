"""The upstream MLIR Python bindings, wherever they are installed (`mlir_bindings`)."""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain.mlir_bindings import defer_dialects, open_library, root

ROOT = root()
"""The name of the package that holds the bindings."""

open_library()
ir: Any = importlib.import_module(f"{ROOT}.ir")
passmanager: Any = importlib.import_module(f"{ROOT}.passmanager")
_translation: Any = importlib.import_module(f"{ROOT}._mlir_libs._mlirDialectsLLVM")

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_size_t
_CAPSULE = f"{ROOT}.ir.Operation._CAPIPtr".encode()


def _identity(operation: Any) -> int:
    """The hash of an operation: its address.

    The bindings' own hash is of an operation's attributes and operands, though two operations are equal only if they
    are the same one. A key would be lost when a pass changes an operand.
    """
    return int(_pointer_of(operation._CAPIPtr, _CAPSULE)) >> 4


for _class in (ir.Operation, ir.OpView):
    _class.__hash__ = _identity

_DIALECTS = (
    "arith",
    "bufferization",
    "builtin",
    "cf",
    "func",
    "linalg",
    "llvm",
    "math",
    "memref",
    "scf",
    "tensor",
    "ub",
    "vector",
)
"""Upstream's dialects of the operations that the kit creates."""

defer_dialects(_DIALECTS, ("tt", "ttg", "tpk"))


def make_context() -> Any:
    """A context that reads Triton's dialect, and the kit's own ``tpk``, as unregistered operations.

    Other dialects of upstream are loaded when a text or a pass needs them: all of them take long to load, and passes
    would collect the patterns of each.
    """
    context = ir.Context(load_on_create_dialects=_DIALECTS)
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    return context


class _ThreadContext(threading.local):
    """A context per thread, replaced after a while, because a context never frees what is uniqued in it.

    Its pass managers are kept, too. Creating one takes as long as running it on a small kernel: the canonicalizer
    collects the patterns of every operation in the context.
    """

    USES = 500

    def __init__(self) -> None:
        self._context: Any = None
        self._managers: dict[str, Any] = {}
        self._left = 0

    def get(self) -> Any:
        if self._left == 0:
            self._managers.clear()  # they point into the context
            self._context, self._left = make_context(), self.USES
        self._left -= 1
        return self._context

    def manager(self, context: Any, pipeline: str) -> Any:
        if context is not self._context:  # the caller's own, or a previous one
            return _pass_manager(pipeline)
        if pipeline not in self._managers:
            self._managers[pipeline] = _pass_manager(pipeline)
        return self._managers[pipeline]


_thread_context = _ThreadContext()


def parse_module(text: str, context: Any | None = None) -> Any:
    """Parse MLIR text, generic or pretty, into a module. Raises the bindings' ``MLIRError``.

    The default `context` is the calling thread's own: creating one takes longer than compiling a small kernel.
    """
    return ir.Module.parse(text, context or _thread_context.get())


_OPEN_FILES = "/proc/self/fd"


def printed(module: Any, *, lines: bool = True, generic: bool = False) -> str:
    """The text of a valid module; with `lines`, operations have their locations.

    The bindings call Python for each word that they print, which takes twice as long as printing: `get_asm`, too. A
    path they print to themselves.
    """
    operation = module.operation
    given = {"enable_debug_info": lines, "print_generic_op_form": generic, "assume_verified": True}
    file = os.memfd_create("tpk-text", os.MFD_CLOEXEC)
    try:
        operation.print(file=f"{_OPEN_FILES}/{file}", **given)
        return os.pread(file, os.fstat(file).st_size, 0).decode()
    except ValueError:  # there is no /proc
        return str(operation.get_asm(**given))
    finally:
        os.close(file)


def run_passes(module: Any, pipeline: str) -> None:
    """Run a textual pass pipeline (``builtin.module(...)``) on a module in place.

    The module is not verified between passes, which would take a fifth of the time, so it must be valid. A parsed
    module is; verify a module that is built in memory first. LLVM verifies the final result.
    """
    with module.context as context:
        _thread_context.manager(context, pipeline).run(module.operation)


def _pass_manager(pipeline: str) -> Any:
    manager = passmanager.PassManager.parse(pipeline)
    manager.enable_verifier(False)
    return manager


def _lists(block: Any) -> Iterator[Any]:
    """The operations of a block, and of each block in them. Walking them takes three times as long."""
    yield block.operations
    for operation in block.operations:
        for region in operation.regions:
            for inner in region.blocks:
                yield inner.operations


_DEBUG_INFORMATION = "!DICompileUnit"

_DEBUG_VERSION = "\n!llvm.module.flags = !{!0}\n"
"""What MLIR says of every module: which version its debug information has. Without such information it is left out: it
makes LLVM verify the module when it is parsed, and end the process where it is not valid.
"""


def to_llvm_ir(module: Any) -> str:
    """Translate a module of the LLVM dialect to LLVM IR text.

    Raises `ToolchainError` for an operation of another dialect, on which MLIR would abort.
    """
    for operations in _lists(module.body):
        for operation in operations:
            name = operation.name
            if not name.startswith("llvm."):
                raise ToolchainError(f"{name}, {operation.location}, has no counterpart in LLVM IR")
    text = str(_translation.translate_module_to_llvmir(module.operation))
    return text if _DEBUG_INFORMATION in text else text.replace(_DEBUG_VERSION, "\n", 1)

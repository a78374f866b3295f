"""The upstream MLIR Python bindings, wherever they are installed.

``mlir`` (conda-forge, or the project's own index) is used if present, else the complete copy in the ``numba-cuda-mlir``
wheel. Only the bindings are loaded from that wheel: importing its own package would also load Numba's CUDA front end
(0.8 s).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

from triton_porting_kit.errors import ToolchainError

_CARRIER = "numba_cuda_mlir"


class _DeferredPackage(ModuleType):
    """A package whose sub-modules can be imported, and whose own body runs only when an attribute is accessed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


def _bindings_root() -> str:
    try:
        if importlib.util.find_spec("mlir.ir") is not None:
            return "mlir"
    except ModuleNotFoundError:
        pass
    if _CARRIER not in sys.modules:
        spec = importlib.util.find_spec(_CARRIER)
        if spec is None:
            raise ToolchainError(
                "the MLIR Python bindings are not installed: neither `mlir` nor `numba-cuda-mlir` was found; "
                "run `pip install numba-cuda-mlir`"
            )
        sys.modules[_CARRIER] = importlib.util.module_from_spec(_deferred(spec))
    return f"{_CARRIER}._mlir"


def _deferred(spec: Any) -> Any:
    loader = spec.loader

    class Loader:
        def create_module(self, spec: Any) -> ModuleType:
            return _DeferredPackage(spec.name)

        def exec_module(self, module: ModuleType) -> None:
            loader.exec_module(module)

    spec.loader = Loader()
    return spec


ROOT = _bindings_root()
"""The name of the package that holds the bindings."""

ir: Any = importlib.import_module(f"{ROOT}.ir")
passmanager: Any = importlib.import_module(f"{ROOT}.passmanager")
llvm_dialect: Any = importlib.import_module(f"{ROOT}.dialects.llvm")

# For every operation whose dialect has no Python module, the bindings would search the disk for one.
for _dialect in ("tt", "ttg", "tpk"):
    sys.modules.setdefault(f"{ROOT}.dialects.{_dialect}", ModuleType(f"{ROOT}.dialects.{_dialect}"))


def make_context() -> Any:
    """A context that reads Triton's dialect, and the kit's own ``tpk``, as unregistered operations."""
    context = ir.Context()
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


def to_llvm_ir(module: Any) -> str:
    """Translate a module of the LLVM dialect to LLVM IR text.

    Raises `ToolchainError` for an operation of another dialect, on which MLIR would abort.
    """

    foreign: list[str] = []
    go_on = ir.WalkResult.ADVANCE

    def visit(operation: Any) -> Any:
        name = operation.name
        if name[:5] == "llvm." or name == "builtin.module":
            return go_on
        foreign.append(f"{operation.name}, {operation.location}, has no counterpart in LLVM IR")
        return ir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    if foreign:
        raise ToolchainError(foreign[0])
    return str(llvm_dialect.translate_module_to_llvmir(module.operation))


def version() -> str:
    """The name and release of the bindings, e.g. ``numba-cuda-mlir 0.6.0``."""
    from importlib import metadata

    distribution = "mlir" if ROOT == "mlir" else "numba-cuda-mlir"
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return f"{distribution} (release unknown)"

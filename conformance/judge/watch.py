"""Inspection within a candidate's process.

A sufficiently hostile candidate can disable all of it. Therefore observations count against a candidate, but a lack of
observations proves nothing.
"""

from __future__ import annotations

import builtins
import importlib
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import triton_porting_kit

MOST_NOTES = 64
"""The maximum number of notes of a process."""

_EVENTS = {
    "gc": "memory",
    "sys._getframe": "memory",
    "sys._current_frames": "memory",
    "sys._current_exceptions": "memory",
    "sys.settrace": "memory",
    "sys.setprofile": "memory",
    "sys.addaudithook": "memory",
    "ctypes": "native",
    "subprocess": "process",
    "os.system": "process",
    "os.fork": "process",
    "os.forkpty": "process",
    "os.exec": "process",
    "os.posix_spawn": "process",
    "os.spawn": "process",
    "os.kill": "process",
    "socket": "network",
    "_thread.start_new_thread": "thread",
}
"""Audit events of Python, or groups of them, that a candidate does not need, and the kinds of notes that they cause."""
_FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
"""Attributes that hold frames."""
_FOLDERS = ("os.listdir", "os.scandir", "os.remove", "os.rmdir", "os.rename", "shutil.rmtree")
"""Audit events whose first argument is a path."""
_DIRECT = ("sys._getframe", "gc")
"""Events that the standard library also raises for its own purposes. They count only if the candidate is the direct
caller, or calls through `inspect`, `traceback` or `importlib`."""
_TRUSTED = ("triton", "triton_porting_kit", "llvmlite", "numba_cuda_mlir", "mlir")
_HARNESS = "triton_porting_kit.conformance.judge"
_FORBIDDEN_PROC = ("mem", "fd", "environ", "task", "root", "cwd", "fdinfo", "map_files")


class Watch:
    """Reports and refuses actions of a candidate other than computing."""

    def __init__(self, candidate: str, tell: Callable[[dict[str, Any]], None], recordings: str = "") -> None:
        """`candidate`: the path of its file. `tell` is called immediately: the candidate could delete stored notes.
        `recordings`: the folder of recorded launches."""
        self._candidate, self._tell = candidate, tell
        self._work, self._recordings = os.path.dirname(candidate), recordings
        self._told: set[tuple[str, str]] = set()
        self._here = __file__
        self._judge = os.path.dirname(os.path.abspath(__file__))
        self._inside = threading.local()
        self.armed = False

    def start(self) -> None:
        """Install the audit hook. Python cannot remove it."""
        sys.addaudithook(self._hook)

    def note(self, kind: str, what: str) -> None:
        """Send a note to the judge, once."""
        if (kind, what) not in self._told and len(self._told) < MOST_NOTES:
            self._told.add((kind, what))
            self._tell({"note": {"kind": kind, "what": what[:200]}})

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.armed or getattr(self._inside, "hook", False):
            return
        self._inside.hook = True  # this code raises audit events itself
        try:
            self._look(event, arguments)
        finally:
            self._inside.hook = False

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(arguments)
            return
        if event == "import":
            name = str(arguments[0])
            if name.startswith(_HARNESS) and self._by_candidate(True):
                self._refuse("harness", f"imports {name}")
            return
        if event == "object.__getattr__":
            if arguments[1] in _FRAMES and self._by_candidate(True) and not self._formats():
                self._refuse("memory", f"reads {arguments[1]}")
            return
        if event in _FOLDERS:
            self._folder(event, arguments[0])
            return
        kind = _EVENTS.get(event) or _EVENTS.get(event.partition(".")[0])
        if kind and self._by_candidate(event.startswith(_DIRECT)):
            self._refuse(kind, f"{event} {_shown(arguments)}".strip())

    def _open(self, arguments: tuple[Any, ...]) -> None:
        try:
            path = os.path.abspath(os.fsdecode(arguments[0]))
        except (TypeError, ValueError):
            return
        parts = path.split("/")
        if path.startswith("/proc/") and len(parts) > 3 and parts[2] not in ("sys", "driver", "net"):
            others = parts[2] not in ("self", "thread-self", str(os.getpid()))
            if (others or parts[3] in _FORBIDDEN_PROC) and self._by_candidate(False):
                self._refuse("memory", f"opens {path}")
        elif path.startswith(self._judge) and self._by_candidate(False):
            self._refuse("harness", f"opens {os.path.basename(path)} of the judge")
        elif self._recordings and path.startswith(self._recordings) and self._by_candidate(False):
            self._refuse("harness", "opens recorded launches")

    def _folder(self, event: str, place: Any) -> None:
        """Its own folder shows whether launches are recorded, so it may not list it; and it may not change
        recordings. Imports list folders as well."""
        try:
            path = (
                os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.fsdecode(place or ".")
            )
            path = os.path.abspath(path)
        except (OSError, TypeError, ValueError):
            return
        inside = self._recordings and path.startswith(self._recordings)
        if (path == self._work or inside) and not self._importing() and self._by_candidate(False):
            self._refuse("harness", f"{event} in the folder that the judge gave it")

    def _frames(self) -> Iterator[tuple[str, str]]:
        """The files and functions on the stack, from the one that caused the event on."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename != self._here:
                yield frame.f_code.co_filename, frame.f_code.co_name
            frame = frame.f_back

    def _importing(self) -> bool:
        return next(self._frames(), ("", ""))[0].startswith("<frozen importlib")

    def _formats(self) -> bool:
        """Whether `traceback` reads frames to print them, and does not return them."""
        file, function = next(self._frames(), ("", ""))
        return file.endswith("/traceback.py") and function != "walk_tb"

    def _by_candidate(self, direct: bool) -> bool:
        """Whether the candidate's code caused the event, and not a library that it called for another purpose."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename == self._here:
            frame = frame.f_back  # type: ignore[assignment]
        while frame is not None:
            file = frame.f_code.co_filename
            if file == self._candidate or file.startswith("<"):
                if file == self._candidate or not file.startswith("<frozen"):
                    return True
            elif direct:
                if not file.endswith(("/inspect.py", "/traceback.py", "importlib/__init__.py")):
                    return False
            elif (frame.f_globals.get("__name__") or "").partition(".")[0] in _TRUSTED:
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False

    def _refuse(self, kind: str, what: str) -> None:
        self.note(kind, what)
        raise PermissionError(f"tpk judge: this is forbidden to candidates: {what}")


def _shown(arguments: tuple[Any, ...]) -> str:
    return ", ".join(repr(item)[:60] for item in arguments[:2] if isinstance(item, str | int | bytes))


# --- what was replaced -------------------------------------------------------------------------------

_MODULES = (
    "builtins", "time", "os", "sys", "gc", "json", "hashlib", "random", "ctypes", "threading", "inspect", "signal",
    "numpy", "numpy.random", "numpy.testing", "torch", "torch.nn.functional", "torch.testing", "torch.cuda",
    "torch.random", "torch.utils.benchmark", "torch.accelerator", "torch.cpu",
    "triton", "triton.testing", "triton.language", "triton.runtime.jit", "triton.runtime.driver",
)  # fmt: skip
"""Modules all of whose functions must stay the same."""
_CLASSES = (
    ("torch", "Tensor"), ("torch", "Generator"), ("torch.cuda", "Event"), ("torch.cuda", "Stream"),
    ("torch.nn", "Module"),
)  # fmt: skip
"""Classes whose methods must stay the same."""
_OWN = (
    _HARNESS, "triton_porting_kit.driver", "triton_porting_kit.launcher", "triton_porting_kit.replay",
    "triton_porting_kit.backends", "triton_porting_kit.toolchain.compat", "triton.runtime", "triton.compiler",
    "triton.backends",
)  # fmt: skip
"""Packages whose functions, and the methods of whose classes, must stay the same."""
_WRAPPED = ("triton.compiler.compiler.parse", "triton.runtime.cache.FileCacheManager.")
_TOOLCHAIN = tuple(os.path.join(place, "toolchain", "") for place in triton_porting_kit.__path__)
"""Those that the kit itself replaces, and the folders of the code that does."""


class Originals:
    """The functions of the libraries and the judge as they were before the candidate was imported."""

    def __init__(self) -> None:
        self._found = dict(self._walk())

    def replaced(self) -> list[str]:
        """The names of functions that have been replaced since."""
        now = dict(self._walk())
        found = ((name, value, now.get(name)) for name, value in self._found.items())
        changed = ((name, old, new) for name, old, new in found if new is not old)
        return sorted(
            name for name, old, new in changed if not _by_torch(old, new) and not _by_kit(name, new)
        )

    def _walk(self) -> Iterator[tuple[str, Any]]:
        for name in _MODULES:
            module = sys.modules.get(name)
            if isinstance(module, types.ModuleType):
                for key, value in list(vars(module).items()):
                    if callable(value) and not isinstance(value, type):
                        yield f"{name}.{key}", value
        for name, cls in _CLASSES:
            owner = vars(sys.modules[name]).get(cls) if name in sys.modules else None
            for key, value in list(vars(owner).items()) if isinstance(owner, type) else ():
                if callable(value) or isinstance(value, property | classmethod | staticmethod):
                    yield f"{name}.{cls}.{key}", value
        for name, module in sys.modules.copy().items():
            if name.startswith(_OWN) and isinstance(module, types.ModuleType):
                yield from _defined(name, module)


def _defined(name: str, module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions of a module, and the methods of the classes that it defines."""
    for key, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType):
            yield f"{name}.{key}", value
        elif isinstance(value, type) and value.__module__ == name:
            inherited: dict[str, Any] = {}  # a method added to a class replaces that of its base
            for base in reversed(value.__mro__[:-1]):
                inherited |= vars(base)
            for method, function in inherited.items():
                if isinstance(function, types.FunctionType | property | classmethod | staticmethod):
                    yield f"{name}.{key}.{method}", function


def _by_torch(old: Any, new: Any) -> bool:
    """Whether torch's compiler wrapped a function, as it does when it is imported."""
    folder = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "/nowhere/")
    while new is not old:
        code = getattr(new, "__code__", None)
        if code is None or not code.co_filename.startswith(folder):
            return False
        new = getattr(new, "__wrapped__", None)
    return True


def _by_kit(name: str, new: Any) -> bool:
    """Whether the kit wrapped a function of Triton's, as it does when it compiles the first kernel."""
    file = getattr(getattr(new, "__code__", None), "co_filename", "")
    return name.startswith(_WRAPPED) and file.startswith(_TOOLCHAIN)


# --- what torch computes -----------------------------------------------------------------------------

# fmt: off
_MOVING = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "zeros", "zeros_like",
    "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "fill", "fill_", "zero_",
    "zero", "scalar_tensor", "lift_fresh", "lift", "arange", "eye", "tril_indices", "triu_indices",
    "_to_copy", "to", "copy_", "copy", "clone", "contiguous", "detach", "detach_", "alias", "view",
    "_unsafe_view", "_reshape_alias", "reshape", "as_strided", "as_strided_", "t", "transpose", "transpose_",
    "permute", "expand", "squeeze", "unsqueeze", "squeeze_", "unsqueeze_", "select", "slice", "narrow",
    "_with_sizes", "chunk", "unbind", "cat", "stack", "flatten", "unflatten", "movedim", "flip", "roll",
    "repeat", "constant_pad_nd", "pad", "unfold", "diagonal", "index_select", "gather", "index", "resize_",
    "set_", "view_as_real", "view_as_complex", "is_same_size", "_local_scalar_dense", "item", "equal", "size",
    "stride", "is_pinned", "_pin_memory", "pin_memory", "_has_compatible_shallow_copy_type", "sym_size",
    "sym_stride", "sym_numel", "sym_storage_offset", "slice_scatter", "select_scatter", "unsafe_",
    "unsafe_chunk", "tile", "numel", "storage_offset",
})
# fmt: on
"""Operators that create, move, convert or inspect tensors without computing."""


def watch_operators(seen: set[str]) -> Any:
    """A dispatch mode of torch that records the operators that compute."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
        ) -> Any:
            name = function._schema.name.replace("::", ".")
            if name.partition(".")[2] not in _MOVING:
                seen.add(name)
            return function(*arguments, **(keywords or {}))

    return Operators()


def other_threads() -> int:
    """The number of Python threads other than this one."""
    return threading.active_count() - 1


class Timers:
    """Handlers of signals and timers, which run code of a candidate between its calls."""

    def __init__(self) -> None:
        self._handler, self._timer = signal.getsignal, signal.getitimer
        self._names = {number: number.name for number in signal.Signals}
        self._kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        self._handlers = {number: self._handler(number) for number in self._names}

    def started(self) -> list[str]:
        """The signals whose handlers have changed, and the timers that run."""
        changed = [self._names[n] for n, handler in self._handlers.items() if self._handler(n) is not handler]
        return changed + ["a timer" for kind in self._kinds if any(self._timer(kind))]


def is_plain_array(value: Any) -> bool:
    """Whether a result is a plain array, and not an object that may compute when it is read."""
    torch = sys.modules.get("torch")
    if torch is not None and builtins.type(value) in (torch.Tensor, torch.nn.Parameter):
        return "__dict__" not in dir(value) or not any(callable(item) for item in vars(value).values())
    from triton_porting_kit.driver import DeviceArray

    return builtins.type(value) is DeviceArray


def bound(name: str) -> Any:
    """Look up a function by its full name now, before a candidate can replace it."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)

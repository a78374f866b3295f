"""Determines the stage in which an exception was raised or a process died, from the Python stack.

Stages: ``imported`` (the backend cannot be loaded), ``compiled: NAME`` (a stage of the compiler; ``compiled: frontend``
is Triton's own), ``binary`` (the binary violates a rule), ``loaded``, ``launched``, ``wrong
result``, ``out-of-bounds write`` and ``check`` (in the check's own code).
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Any

IMPORTED = "imported"
BINARY = "binary"
LOADED = "loaded"
LAUNCHED = "launched"
WRONG_RESULT = "wrong result"
OUT_OF_BOUNDS = "out-of-bounds write"
IN_CHECK = "check"

_COMPILER = "triton/compiler/compiler.py"
_JIT = "triton/runtime/jit.py"
_MEMORY = "conformance/memory.py"
_LAUNCHERS = frozenset({"launch", "synchronize", "launch_entry"})


def of_exception(error: BaseException) -> str:
    """The stage of an exception, from the innermost frame that identifies one."""
    frames = [(frame, _place(frame)) for frame in _frames(error.__traceback__)]
    for frame, (file, function) in reversed(frames):
        if file.endswith(_COMPILER) and function == "compile":
            return f"compiled: {_stage_in(frame)}"
    return of_places(place for _, place in frames)


def of_places(places: Iterable[tuple[str, str]]) -> str:
    """The stage of a stack of (file, function), outermost first, as `faulthandler` shows it."""
    found = IN_CHECK
    for file, function in places:
        path = file.replace("\\", "/")
        if path.endswith(_COMPILER) and function == "compile":
            return "compiled"
        if path.endswith(_COMPILER) and function in ("_init_handles", "__init__"):
            found = LOADED
        elif found == IN_CHECK and (path.endswith((_JIT, _MEMORY)) or function in _LAUNCHERS):
            found = LAUNCHED
    return found


def of_dump(text: str) -> str:
    """The stage of a stack that `faulthandler` wrote (innermost frame first)."""
    places = re.findall(r'File "([^"]+)", line \d+ in (\S+)', text)
    return of_places(reversed(places))


def _frames(trace: TracebackType | None) -> list[Any]:
    return [frame for frame, _ in traceback.walk_tb(trace)]


def _place(frame: Any) -> tuple[str, str]:
    return frame.f_code.co_filename, frame.f_code.co_name


def _stage_in(frame: Any) -> str:
    """The stage of Triton's `compile`, from its loop variable, which is unset during the front end."""
    stage = frame.f_locals.get("ext")
    return stage if isinstance(stage, str) else "frontend"

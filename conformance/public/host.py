"""The process that has a collection's package and runs its cases: ``host SOCKET MODULE``.

For each ``{"case": name, "times": bool}`` it sends ``{"evidence": [...], "caught": [...], "found": [...]}``. It is
started by `hosts`, which puts the package on the path and lets ``cuda`` be the backend's device. With ``TPK_CHECK``,
launches are examined, and memory that torch does not initialise is filled with NaN and the largest integers.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import socket
import sys
import types
from typing import Any

import torch

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed
from triton_porting_kit.conformance.public import examining, judging
from triton_porting_kit.conformance.public.entries import Case, Collection, cases_of
from triton_porting_kit.conformance.status import Evidence
from triton_porting_kit.conformance.trial import error_evidence


def main(descriptor: str, module: str) -> None:
    """Serve until the other end closes the channel. `module`: that of the collection."""
    channel = Channel(socket.socket(fileno=int(descriptor)))
    collection: Collection = importlib.import_module(module).COLLECTION
    provide_stubs(collection)
    if collection.cuda and torch.version.cuda is None:
        torch.version.cuda = collection.cuda
    caught = watch_compilations()
    found: list[str] = []
    if os.environ.get("TPK_CHECK"):
        examining.examine_launches(found.append)
        torch.use_deterministic_algorithms(True, warn_only=True)  # it fills memory
    cases = {case.name: case for case in cases_of(collection)}
    try:
        while True:
            order = channel.receive()
            caught.clear()
            found.clear()
            try_it = measure if order.get("times") else judge
            evidence = [*try_it(cases[order["case"]])]
            errors = [f"{type(error).__name__}: {str(error)[:500]}" for error in caught]
            channel.send({"evidence": evidence, "caught": errors, "found": found})
    except ChannelClosed:
        pass


def judge(case: Case) -> list[Evidence]:
    """The evidence of a case: its comparisons, up to the first that fails, or an exception."""
    found: list[Evidence] = []
    try:
        for what, comparison in judging.judge(case):
            found.append(comparison.evidence(what))
            if comparison.differ:
                break
        if not found:
            found.append({"kind": "harness", "type": "NoResult", "message": "the entry returned no tensor"})
    except judging.ReferenceFailed as error:
        found.append({**error_evidence(error), "kind": "harness"})
    except Exception as error:
        found.append({**error_evidence(error), "kind": "error"})
    return found


def measure(case: Case) -> list[Evidence]:
    """The times of a case that has large inputs, as evidence without a number of threads."""
    if not case.entry.large:
        return []
    try:
        return [{"kind": "times", "what": "times", **judging.times(case)}]
    except Exception as error:
        return [error_evidence(error)]


def watch_compilations() -> list[BaseException]:
    """The list to which exceptions of Triton's compiler are added, also those that a package catches.

    Without those after which an autotuner tries its next configuration, such as one that needs more memory than the
    chip has: trying is how it finds that out. And without those of kernels that are compiled ahead, which are compiled
    again when they are launched.
    """
    import triton.compiler
    import triton.compiler.compiler

    caught: list[BaseException] = []
    original = triton.compiler.compiler.compile

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:
            callers = _callers()
            if _AHEAD not in callers and not (_TRYING in callers and isinstance(error, _passed_over())):
                caught.append(error)
            raise

    # Kernels take it from the package when they are bound to a device.
    triton.compiler.compile = triton.compiler.compiler.compile = compile
    return caught


def _passed_over() -> tuple[type[Exception], ...]:
    """The exceptions that Triton's autotuner catches: ``Autotuner._bench``."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, CompileTimeAssertionFailure, PTXASError


_TRYING = ("triton.runtime.autotuner", "_bench")
_AHEAD = ("triton_porting_kit.toolchain.together", "compile_together")


def _callers() -> set[tuple[str, str]]:
    """The functions that are being called, with their modules."""
    found = set()
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        found.add((str(frame.f_globals.get("__name__")), frame.f_code.co_name))
        frame = frame.f_back
    return found


class _Stub(types.ModuleType):
    """A module of nothing: whatever is taken from it is a class whose constructor says so."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*args: Any, **kwargs: Any) -> None:
            raise NotImplementedError(f"{self.__name__}.{name} is not installed")

        return type(name, (), {"__init__": missing})


def provide_stubs(collection: Collection) -> None:
    """Let the modules that the collection does without be imported."""
    for name in collection.stubs:
        sys.modules.setdefault(name, _Stub(name))
    for name in collection.bare:
        found = importlib.util.find_spec(name)
        module = types.ModuleType(name)
        module.__path__ = list(found.submodule_search_locations or ()) if found else []
        sys.modules[name] = module


if __name__ == "__main__":
    main(*sys.argv[1:])

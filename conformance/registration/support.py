"""Helpers for registration checks: the backend as Triton sees it, and compiled kernels."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import triton

from triton_porting_kit.conformance.context import BY_BACKEND, Context, Session
from triton_porting_kit.conformance.language.source import make_kernel

SUM = (
    "def total(X, O, n, BLOCK: tl.constexpr):\n"
    "    i = tl.arange(0, BLOCK)\n"
    "    tl.store(O, tl.sum(tl.load(X + i, mask=i < n, other=0), axis=0))\n"
)


def target_of(context: Context) -> Any:
    """The target that kernels are compiled for."""
    return context.driver.get_current_target()


def backend_of(context: Context, target: Any = None) -> Any:
    """A new instance of the compiler that Triton chooses for a target, by default the current one."""
    from triton.compiler.compiler import make_backend

    return make_backend(target or target_of(context))


def registered(context: Context) -> Any:
    """The compiler and driver classes registered under the backend's name."""
    from triton.backends import backends

    return backends[context.session.backend]


def entry_points(name: str) -> list[Any]:
    """The entry points with the backend's name in Triton's group."""
    found = importlib.metadata.entry_points(group="triton.backends")
    return [point for point in found if point.name == name]


def anew(source: str) -> Any:
    """A kernel that is not compiled in this process; the cache on disk may have it."""
    return triton.jit(make_kernel(source).fn)


def warm(source: str, *args: Any, **options: Any) -> Any:
    """Compile a kernel for some arguments without launching it. It may come from the cache on disk, not from memory."""
    return anew(source).warmup(*args, grid=(1,), **options)


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """A context with changed environment variables; None removes one."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def own_cache(context: Context) -> Iterator[str]:
    """A context in which Triton's cache is a new, empty folder."""
    with tempfile.TemporaryDirectory(dir=context.session.scratch or None) as folder:
        with environment(TRITON_CACHE_DIR=folder, TRITON_ALWAYS_COMPILE=None):
            yield folder


# --- fresh processes ---------------------------------------------------------------------------------------

_CHILD = """
import json, sys
from triton_porting_kit.conformance.registration import child
from triton_porting_kit.conformance.trial import error_evidence
try:
    answer = {"result": getattr(child, sys.argv[1])(*json.loads(sys.argv[2]))}
except Exception as error:
    answer = {"raised": error_evidence(error)}
print("\\n" + json.dumps(answer), flush=True)
"""


def in_fresh_process(task: str, *arguments: Any, **variables: str | None) -> Any:
    """Call a function of `triton_porting_kit.conformance.registration.child` in a new process.

    `arguments` are JSON types. `variables`: changed environment variables; None removes one. Raises `RuntimeError`
    with the error and the output of the process if it fails. Unless the suite is at fault, that is the backend's.
    """
    kept = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, task, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in kept.items() if value is not None},
    )
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        answer = {}
    said = f"; it wrote: {done.stderr[-2000:]}" if done.stderr.strip() else ""
    if done.returncode:
        when = "while it exited, after its work was done," if answer else "before its work was done"
        raise _of_backend(f"a fresh process ended {when} with {_ending(done.returncode)}{said}")
    if raised := answer.get("raised"):
        text = f"a fresh process raised {raised['type']}: {raised['message']}\n{raised['traceback']}"
        raise RuntimeError(text) if raised["kind"] == "harness" else _of_backend(text)
    if "result" not in answer:
        raise _of_backend(f"a fresh process exited before its work was done{said}")
    return answer["result"]


def _ending(code: int) -> str:
    """The exit status of a process, or the name of the signal that ended it."""
    if code > 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _of_backend(message: str) -> RuntimeError:
    """An error that is evidence against the backend, although the suite raises it."""
    error = RuntimeError(message)
    setattr(error, BY_BACKEND, True)
    return error


@functools.cache
def facts_of_fresh_process(backend: str, chosen: bool) -> Any:
    """Call `triton_porting_kit.conformance.registration.child.facts` in a new process; `chosen` selects the backend.

    The process has another seed for Python's hashes, so values that depend on them differ. Results are cached, because
    several checks use them.
    """
    return in_fresh_process(
        "facts", backend, TRITON_DEFAULT_BACKEND=backend if chosen else None, PYTHONHASHSEED="4711"
    )


def memory_of(session: Session) -> str:
    """The value of `memory` in a profile with which a fresh process accesses memory as this one does."""
    return str(session.memory.describe()["memory"])

"""Checks that do what chips do while they are brought up. Workers import this by name."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language import cases
from triton_porting_kit.conformance.language.checks import CaseBody
from triton_porting_kit.errors import DeviceLost
from triton_porting_kit.launcher import cache as launcher_cache
from triton_porting_kit.toolchain import compat

GARBAGE = b'{"record": null}\n\xff\xfe garbage '


def passes(context: Context) -> None:
    context.expect(True, "one is one")


def segfaults(context: Context) -> None:
    print("about to touch NULL")
    ctypes.string_at(0)


def aborts(context: Context) -> None:
    os.abort()


def exits(context: Context) -> None:
    sys.exit(3)


def is_exited(context: Context) -> None:
    ctypes.CDLL(None).exit(7)


def leaves_at_once(context: Context) -> None:
    os._exit(9)


def hangs(context: Context) -> None:
    time.sleep(1000)


def hangs_the_first_time(context: Context) -> None:
    """As one that is too slow beside other work."""
    with open(os.environ.get("TPK_FAKE_TRIES", os.devnull), "a") as tries:
        tries.write("x")
        if tries.tell() == 1:
            tries.close()
            time.sleep(1000)
    context.expect(True, "it came to an end")


def hangs_with_the_interpreter(context: Context) -> None:
    ctypes.PyDLL(None).sleep(1000)


def raises(context: Context) -> None:
    raise ValueError("the chip is on fire")


def records_nothing(context: Context) -> None:
    pass


def computes_garbage(context: Context) -> None:
    context.expect(False, "two is two", "it is 3")


def writes_out_of_bounds(context: Context) -> None:
    array = context.array(np.zeros(4, np.int32), "i32")
    context.device.memset(array.data_ptr() + 16, 1, 4)
    context.expect(True, "all elements are right")


def prints_garbage(context: Context) -> None:
    for _ in range(20_000):
        os.write(1, GARBAGE)
    context.expect(True, "it said something")


def prints_and_hangs(context: Context) -> None:
    while True:
        os.write(2, GARBAGE)


def leaves_a_child(context: Context) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    print("child", child.pid)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def loses_the_device(context: Context) -> None:
    memory = context.memory

    def reset() -> None:
        Path(context.session.scratch, "reset").touch()
        type(memory).reset(memory)

    memory.reset = reset  # type: ignore[method-assign]
    raise DeviceLost("launch: the device does not answer")


def was_reset(context: Context) -> None:
    context.expect(Path(context.session.scratch, "reset").exists(), "the device was reset")


def breaks_the_device(context: Context) -> None:
    def allocate(size: int) -> None:
        raise RuntimeError("an illegal memory access was encountered")

    context.memory.allocate = allocate  # type: ignore[assignment,method-assign]
    context.empty((4,), "i32")


def has_a_device(context: Context) -> None:
    context.empty((4,), "i32")
    context.expect(True, "memory can be allocated")


@triton.jit
def wild_store(out):
    tl.store((out.to(tl.int64) * 0 + 64).to(tl.pointer_type(tl.int32)), 1)


@triton.jit
def never_compiled(out):
    tl.store(out, 1)


def crashes_in_a_launch(context: Context) -> None:
    wild_store[(1,)](context.empty((4,), "i32"))


@triton.jit
def one_store(out, value):
    tl.store(out, value)


@triton.jit
def endless(out):
    while tl.load(out, volatile=True) == 0:
        pass


def stores_garbage(context: Context) -> None:
    array = context.empty((4,), "i32")
    for value in (3, 5):
        one_store[(1,)](array, value)
    context.expect(True, "a kernel can be launched")
    context.expect(array.read()[0] == 3, "the kernel stored 3")


def never_comes_back(context: Context) -> None:
    array = context.array(np.zeros(4, np.int32), "i32")
    one_store[(1,)](array, 0)
    endless[(1,)](array)


def fails_once(context: Context) -> None:
    """Fails in the worker that runs it first, and passes in the one that records launches."""
    one_store[(1,)](context.empty((4,), "i32"), 1)
    context.expect("TPK_CAPTURE" in os.environ, "it is run again")


def compiles_into_another_cache(context: Context) -> None:
    """As Inductor without caches."""
    before = launcher_cache.cache_path()
    there = os.environ["TRITON_CACHE_DIR"]
    os.environ["TRITON_CACHE_DIR"] = context.session.scratch
    try:
        context.expect(launcher_cache.cache_path() == before, "launch code is found again")
    finally:
        os.environ["TRITON_CACHE_DIR"] = there


def crashes_in_the_compiler(context: Context) -> None:
    def make_ir(*arguments: object, **options: object) -> None:
        os.abort()

    triton.compiler.compiler.ASTSource.make_ir = make_ir
    never_compiled[(1,)](context.empty((4,), "i32"))


@dataclass(frozen=True)
class CrashingCase:
    """A case of the language table whose kernel kills the process, with those of its batch."""

    id: str = "crash"

    def work(self) -> None:
        os.abort()


def _alone() -> Iterator[Check]:
    own = [
        value
        for value in globals().values()
        if callable(value) and getattr(value, "__module__", "") == __name__
    ]
    for body in own:
        code = getattr(body, "__code__", None)
        if code is None or code.co_varnames[: code.co_argcount] != ("context",):
            continue
        seconds = 1.0 if "hang" in body.__name__ else 4.0 if body is never_comes_back else 30.0
        yield Check(f"runtime/fake/{body.__name__}", f"It {body.__name__}.", body, seconds=seconds)


def _batch() -> Iterator[Check]:
    chosen = [case for case in cases(compat.release()) if case.batch == "add-i32"][:3]
    for case in chosen:
        yield Check(f"language/fake/{case.id}", "Addition.", CaseBody(case), batch="language/fake")
    crash: CaseBody = CaseBody(CrashingCase())  # type: ignore[arg-type]
    yield Check("language/fake/crash", "It crashes.", crash, batch="language/fake")
    yield Check("language/fake/after", "It passes.", passes, batch="language/fake")


SLEEPY = 12
"""The first of the slow checks that do not wake up where TPK_FAKE_SLEEP is set."""


def _slow(number: int) -> Check:
    def sleeps(context: Context) -> None:
        time.sleep(1000 if number >= SLEEPY and "TPK_FAKE_SLEEP" in os.environ else 0.05)
        context.expect(True, "it woke up")

    return Check(f"kernels/slow/{number:02}", "It sleeps.", sleeps, seconds=200)


CHECKS = {
    "runtime": tuple(_alone()),
    "language": tuple(_batch()),
    "kernels": tuple(_slow(number) for number in range(24)),
}


def checks(
    levels: Sequence[str] = ("runtime", "language", "kernels"), *, stress: int = 0, seed: int = 0
) -> Iterator[Check]:
    """As `triton_porting_kit.conformance.catalogue.checks`."""
    for level in levels:
        yield from CHECKS.get(level, ())

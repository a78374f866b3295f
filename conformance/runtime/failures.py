"""Errors are reported where they occur, and do not affect other launches."""

from __future__ import annotations

from functools import partial

import numpy as np
import triton

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel

CHECKS = Checks("runtime/failures")

GOOD = "def good(O):\n    tl.store(O, 5)\n"

_BROKEN: dict[str, tuple[str, str]] = {
    "undefined-name": ("uses a name that is not defined", "tl.store(O, not_defined_anywhere)"),
    "static-assert": ("has a static assertion that fails", "tl.static_assert(False, 'never')"),
    "odd-range": (
        "makes a range of 3 elements, which is not a power of two,",
        "tl.store(O + tl.arange(0, 3), 1)",
    ),
    "shapes": (
        "adds incompatible shapes",
        "tl.store(O + tl.arange(0, 4), tl.arange(0, 4) + tl.arange(0, 8))",
    ),
    "types": ("multiplies two pointers", "tl.store(O, O * O)"),
    "python": ("calls a Python function that Triton does not support", "tl.store(O, open('x'))"),
    "not-a-pointer": ("loads from a number", "tl.store(O, tl.load(tl.program_id(0)))"),
}


def _not_compiled(context: Context, statement: str) -> None:
    before = np.full(8, 3, np.int64)
    out = context.array(before, "i64")
    kernel = make_kernel(f"def broken(O):\n    {statement}\n")
    for turn in ("the first launch", "the second launch"):
        context.refuses(turn, lambda: kernel[(1,)](out), Exception)
    context.compare("memory", identical(context.read(out), before))
    make_kernel(GOOD)[(1,)](out)
    context.compare("another kernel", identical(context.read(out)[:1], np.array([5], np.int64)))


for _name, (_what, _statement) in _BROKEN.items():
    CHECKS.add(
        f"compile-{_name}",
        f"A kernel that {_what} raises at every launch; nothing runs, and other kernels still work.",
        partial(_not_compiled, statement=_statement),
    )


@CHECKS.check(
    "compile-error-says-where", "The error of a kernel that does not compile shows the faulty line."
)
def _says_where(context: Context) -> None:
    out = context.array(np.zeros(1, np.int64), "i64")
    kernel = make_kernel("def broken(O):\n    x = 5\n    tl.store(O, x + no_such_thing)\n")
    error = context.refuses("the launch", lambda: kernel[(1,)](out), Exception)
    context.expect("no_such_thing" in str(error), "the message has the line", str(error)[:500])


# --- assertions --------------------------------------------------------------------------------------------

ASSERTS = (
    "def checks(O, limit):\n    p = tl.program_id(0)\n    tl.device_assert(p < limit, 'beyond the limit')\n"
    "    tl.store(O + p, p + 1)\n"
)


@CHECKS.check(
    "assert-holds",
    "Assertions that hold do not affect a kernel.",
    needs=("feature:assert",),
)
def _assert_holds(context: Context) -> None:
    for debug in (True, False):
        out = context.array(np.zeros(8, np.int64), "i64")
        make_kernel(ASSERTS)[(8,)](out, 9, debug=debug)
        context.compare(f"debug={debug}", identical(context.read(out), np.arange(1, 9, dtype=np.int64)))


@CHECKS.check(
    "assert-without-debug", "Assertions are not evaluated if debug is off.", needs=("feature:assert",)
)
def _assert_without_debug(context: Context) -> None:
    out = context.array(np.zeros(8, np.int64), "i64")
    make_kernel(ASSERTS)[(8,)](out, 3, debug=False)
    context.compare("all programs ran", identical(context.read(out), np.arange(1, 9, dtype=np.int64)))


@CHECKS.check(
    "assert-fails",
    "An assertion that does not hold is raised with its text, at the launch or the next synchronisation. (Where "
    "memory is torch's, this would end the process.)",
    needs=("feature:assert",),
    kit_device=True,
)
def _assert_fails(context: Context) -> None:
    out = context.array(np.zeros(8, np.int64), "i64")

    def launch() -> None:
        make_kernel(ASSERTS)[(8,)](out, 3, debug=True)
        context.memory.synchronize()

    for _ in range(2):
        error = context.refuses("the launch", launch, (RuntimeError, AssertionError))
        context.expect("beyond the limit" in str(error), "the message has the text", str(error)[:500])
    make_kernel(ASSERTS)[(8,)](out, 9, debug=True)
    context.compare("a launch afterwards", identical(context.read(out), np.arange(1, 9, dtype=np.int64)))


# --- globals -------------------------------------------------------------------------------------------------


@CHECKS.check("changed-global", "A change of a global constant after the kernel was compiled is detected.")
def _changed_global(context: Context) -> None:
    from triton.language import constexpr

    kernel = triton.jit(make_kernel("def uses(O):\n    tl.store(O, FACTOR * 2)\n").fn)
    out = context.array(np.zeros(1, np.int64), "i64")
    scope = kernel.fn.__globals__
    scope["FACTOR"] = constexpr(21)
    try:
        kernel[(1,)](out)
        context.compare("the constant", identical(context.read(out), np.array([42], np.int64)))
        scope["FACTOR"] = constexpr(22)
        context.refuses("the launch afterwards", lambda: kernel[(1,)](out), RuntimeError)
    finally:
        del scope["FACTOR"]

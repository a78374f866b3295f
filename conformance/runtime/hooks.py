"""Hooks that users of Triton set, and that the driver and the launcher must call."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.toolchain import compat

CHECKS = Checks("runtime/hooks")

KERNEL = "def hooked(X, by):\n    tl.store(X, tl.load(X) + by)\n"


class Refusal(Exception):
    """Raised by hooks that make a launch fail."""


@CHECKS.check(
    "enter-and-exit", "The launch hooks are called once for each launch, one before it and one after."
)
def _enter_and_exit(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = make_kernel(KERNEL)
    kernel[(1,)](word, 3)
    seen: list[tuple[str, str]] = []
    with compat.runtime_hooks(
        launch_enter_hook=lambda data: seen.append(("enter", data.get()["name"])),
        launch_exit_hook=lambda data: seen.append(("exit", data.get()["name"])),
    ):
        for _ in range(3):
            kernel[(1,)](word, 3)
    kernel[(1,)](word, 3)
    context.compare("five launches", identical(context.read(word), np.array([15], np.int64)))
    name = seen[0][1] if seen else ""
    context.expect(
        seen == [("enter", name), ("exit", name)] * 3, "three times, enter and then exit", repr(seen)
    )
    context.expect("hooked" in name, "they get the kernel's name", name)


@CHECKS.check(
    "before-and-after", "The enter hook is called before the kernel runs, the exit hook after the launch."
)
def _before_and_after(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = make_kernel(KERNEL)
    kernel[(1,)](word, 3)
    seen: list[int] = []

    def look(data: Any) -> None:
        seen.append(int(context.read(word)[0]))

    with compat.runtime_hooks(launch_enter_hook=look, launch_exit_hook=look):
        kernel[(1,)](word, 5)
    context.expect(seen == [3, 8], "memory holds 3 before and 8 after", repr(seen))


@CHECKS.check("metadata", "The hooks get the kernel's name, its function and the stream.")
def _metadata(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    found: list[dict[str, Any]] = []
    with compat.runtime_hooks(launch_enter_hook=lambda data: found.append(data.get())):
        compiled = make_kernel(KERNEL)[(1,)](word, 3)
    context.expect(len(found) == 1, "the hook is called once", str(len(found)))
    stream = context.driver.get_current_stream(context.driver.get_current_device())
    wanted = {"name": compiled.name, "function": compiled.function, "stream": stream}
    for name, value in wanted.items():
        context.expect(found[0].get(name) == value, f"{name} is {value!r}", repr(found[0].get(name)))


@CHECKS.check("launch-metadata", "What a kernel's own launch_metadata function returns reaches the hooks.")
def _launch_metadata(context: Context) -> None:
    asked: list[tuple[Any, ...]] = []

    def describe(grid: Any, metadata: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append((tuple(grid), metadata.num_warps, arguments["by"]))
        return {"flops": 12, "name": "renamed"}

    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = triton.jit(make_kernel(KERNEL).fn, launch_metadata=describe)
    found: list[dict[str, Any]] = []
    with compat.runtime_hooks(launch_enter_hook=lambda data: found.append(data.get())):
        compiled = kernel[(2,)](word, 3)
    context.memory.synchronize()
    context.expect(
        asked == [((2,), compiled.metadata.num_warps, 3)],
        "it is asked once, with grid and arguments",
        repr(asked),
    )
    context.expect(
        [(item.get("flops"), item.get("name")) for item in found] == [(12, "renamed")],
        "its answer arrives",
        repr(found),
    )


def _raising(context: Context, hook: str, ran: int) -> None:
    """`ran`: 1 if the kernel has run when the hook raises."""
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = make_kernel(KERNEL)
    kernel[(1,)](word, 3)

    def fail(data: Any) -> None:
        raise Refusal(hook)

    with compat.runtime_hooks(**{hook: fail}):
        context.refuses("the launch", lambda: kernel[(1,)](word, 3), Refusal)
    context.compare("memory", identical(context.read(word), np.array([3 + 3 * ran], np.int64)))
    kernel[(1,)](word, 3)
    context.compare("a launch afterwards", identical(context.read(word), np.array([6 + 3 * ran], np.int64)))


@CHECKS.check("enter-raises", "If the enter hook raises, the launch raises the same error and does not run.")
def _enter_raises(context: Context) -> None:
    _raising(context, "launch_enter_hook", 0)


@CHECKS.check("exit-raises", "If the exit hook raises, the launch has run and raises the same error.")
def _exit_raises(context: Context) -> None:
    _raising(context, "launch_exit_hook", 1)


@CHECKS.check("pre-run", "A kernel's own pre-run hooks are called with its arguments.")
def _pre_run(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = triton.jit(make_kernel(KERNEL).fn)
    seen: list[Any] = []
    kernel.add_pre_run_hook(lambda *args, **options: seen.append((args[1:], args[0] is word)))
    kernel[(1,)](word, 3)
    kernel[(1,)](word, 5)
    context.compare("two launches", identical(context.read(word), np.array([8], np.int64)))
    context.expect(seen == [((3,), True), ((5,), True)], "they are called once for each", repr(seen))


@CHECKS.check(
    "loading",
    "The load hooks are called before and after loading, once for a kernel, with its name and its hash.",
)
def _loading(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = triton.jit(make_kernel(KERNEL).fn)
    seen: list[tuple[str, bool, str, str]] = []

    def note(which: str) -> Any:
        return lambda module, function, name, group, digest: seen.append(
            (which, module is not None, name, digest)
        )

    with compat.runtime_hooks(kernel_load_start_hook=note("start"), kernel_load_end_hook=note("end")):
        compiled = kernel[(1,)](word, 3)
        kernel[(1,)](word, 3)
    context.memory.synchronize()
    name, digest = compiled.name, compiled.hash
    wanted = [("start", False, name, digest), ("end", True, name, digest)]
    context.expect(seen == wanted, "start without a module, end with one", repr(seen))


@CHECKS.check(
    "compiling", "The compilation hooks are called before and after compilation, once for each signature."
)
def _compiling(context: Context) -> None:
    word, wide = context.array(np.zeros(1, np.int64), "i64"), context.array(np.zeros(1, np.int32), "i32")
    kernel = triton.jit(make_kernel(KERNEL).fn)
    seen: list[tuple[str, Any]] = []
    with compat.runtime_hooks(
        jit_cache_hook=lambda **info: seen.append(("before", info["fn"].name)),
        jit_post_compile_hook=lambda **info: seen.append(("after", info["fn"].name)),
    ):
        for array in (word, word, wide, word):
            kernel[(1,)](array, 3)
    context.memory.synchronize()
    context.expect(
        [which for which, _ in seen] == ["before", "after"] * 2, "for two kinds of arguments", repr(seen)
    )


@CHECKS.check("skip-compiling", "A hook before compilation may prevent it; then nothing runs.")
def _skip(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = triton.jit(make_kernel(KERNEL).fn)
    with compat.runtime_hooks(jit_cache_hook=lambda **info: True):
        context.expect(kernel[(1,)](word, 3) is None, "the launch gives no kernel")
    context.compare("memory", identical(context.read(word), np.zeros(1, np.int64)))
    kernel[(1,)](word, 3)
    context.compare("a launch afterwards", identical(context.read(word), np.array([3], np.int64)))

"""Loading compiled binaries, and launching them through the device's hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.blocks import stream_of
from triton_porting_kit.conformance.runtime.spinning import ODD, at_two_paces, spin, turns_for
from triton_porting_kit.errors import InvalidModule, LaunchError
from triton_porting_kit.launcher.layout import ArgLayout

CHECKS = Checks("runtime/modules", kit_device=True)

EMPTY = "def does_nothing():\n    pass\n"
COUNT = "def counts(O):\n    p = tl.program_id(0)\n    tl.store(O + p, tl.load(O + p) + p.to(tl.int64) + 1)\n"
UNKNOWN = (1 << 40) + 7
NO_ARGUMENTS = bytes(64)
"""The argument block of a kernel without parameters. Fields that a backend's compiler appends, such as pointers to
scratch memory that the kernel does not use, are zero."""


def compiled(context: Context, source: str, *args: Any) -> tuple[bytes, str]:
    """The binary of a kernel, and the kernel's name in it."""
    kernel = make_kernel(source).warmup(*args, grid=(1,))
    return bytes(kernel.kernel), str(kernel.metadata.name)


def _empty(context: Context) -> tuple[bytes, str]:
    return compiled(context, EMPTY)


@CHECKS.check(
    "load", "A compiled binary can be loaded, its kernel found and launched, and the module unloaded."
)
def _load(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    module = device.load_module(binary, name)
    function = device.get_function(module, name)
    for grid in ((1,), (3, 2), (2, 3, 4), (0,), (5, 0)):
        device.launch(function, grid, 0, NO_ARGUMENTS)
        device.synchronize()
    device.unload_module(module)
    context.expect(True, "five launches ran")


@CHECKS.check(
    "load-twice",
    "One binary can be loaded more than once; the modules are independent.",
)
def _load_twice(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    first, second = device.load_module(binary, name), device.load_module(binary, name)
    context.expect(first != second, "the handles differ", str(first))
    device.unload_module(first)
    device.launch(device.get_function(second, name), (4,), 0, NO_ARGUMENTS)
    device.synchronize()
    device.unload_module(second)
    context.expect(True, "the second worked when the first was gone")


_BROKEN: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "empty": ("is empty", lambda binary: b""),
    "one-byte": ("is one byte", lambda binary: b"\x7f"),
    "zeros": ("is all zeros", lambda binary: bytes(len(binary))),
    "ones": ("is all ones", lambda binary: b"\xff" * len(binary)),
    "text": ("is text", lambda binary: b"this is no binary of any device\n" * 40),
    "head": ("ends after its first 16 bytes", lambda binary: binary[:16]),
    "half": ("ends in the middle", lambda binary: binary[: len(binary) // 2]),
    "no-head": ("lacks its first 64 bytes", lambda binary: binary[64:]),
}


def _refused(context: Context, kind: str) -> None:
    device = context.device
    binary, name = _empty(context)
    broken = _BROKEN[kind][1](binary)
    what, load = "load_module", partial(device.load_module, broken, name)
    if device.properties().modules_are_source:
        what, load = "load_module or get_function", partial(_build, device, broken, name)
        if kind == "no-head":  # the missing head may be a comment
            load = partial(_build, device, b")}" + binary, name)
    context.refuses(what, load, InvalidModule)
    _load(context)


def _build(device: Any, source: bytes, name: str) -> None:
    """Load a module and get its kernel. Half a source may still be valid, but it lacks the kernel."""
    module = device.load_module(source, name)
    try:
        device.get_function(module, name)
    finally:
        device.unload_module(module)


for _kind, (_what, _break) in _BROKEN.items():
    _source = ", or a source with a stray bracket before it," if _kind == "no-head" else ""
    CHECKS.add(
        f"{_kind}-refused",
        f"A module that {_what}{_source} is refused with InvalidModule, and a good one loads afterwards.",
        partial(_refused, kind=_kind),
    )


@CHECKS.check("missing-function-refused", "A kernel that is not in a module is refused with InvalidModule.")
def _missing_function(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)

    def load_and_get() -> None:  # the device may raise in either of the two calls
        device.get_function(device.load_module(binary, "no_such_kernel"), "no_such_kernel")

    context.refuses("a name that no kernel has", load_and_get, InvalidModule)
    module = device.load_module(binary, name)
    for other in ("no_such_kernel", name + "x", name[:-1], ""):
        context.refuses(f"get_function {other!r}", partial(device.get_function, module, other), InvalidModule)
    device.unload_module(module)


@CHECKS.check("unload-then-launch-refused", "A kernel of a module that was unloaded cannot be launched.")
def _unload_then_launch(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    module = device.load_module(binary, name)
    function = device.get_function(module, name)
    device.unload_module(module)
    context.refuses(
        "launch", lambda: device.launch(function, (1,), 0, NO_ARGUMENTS), (LaunchError, InvalidModule)
    )


@CHECKS.check(
    "unloaded-refused", "A module that was unloaded can neither be unloaded again nor asked for a kernel."
)
def _unloaded(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    module = device.load_module(binary, name)
    device.unload_module(module)
    context.refuses("unload_module", lambda: device.unload_module(module), InvalidModule)
    context.refuses("get_function", lambda: device.get_function(module, name), InvalidModule)


@CHECKS.check("unknown-refused", "Handles of modules and functions that never existed are refused.")
def _unknown(context: Context) -> None:
    device = context.device
    for handle in (0, UNKNOWN):
        context.refuses(f"unload_module({handle})", partial(device.unload_module, handle), InvalidModule)
        context.refuses(f"get_function({handle})", partial(device.get_function, handle, "x"), InvalidModule)
        context.refuses(
            f"launch({handle})",
            partial(device.launch, handle, (1,), 0, NO_ARGUMENTS),
            (LaunchError, InvalidModule),
        )


PLACES = """
def places(O, width, height):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(O + (z * height + y) * width + x, (x + 10 * y + 100 * z + 1).to(tl.int64))
"""


@contextmanager
def _hooked(context: Context, *args: Any) -> Iterator[Callable[[tuple[int, ...], int], None]]:
    """Load `PLACES`, and give a function that launches it by the hook, which launchers in native code do not call."""
    kernel = make_kernel(PLACES).warmup(*args, grid=(1,))
    name, device = str(kernel.metadata.name), context.device
    block = ArgLayout.from_source(kernel.src).pack(args) + NO_ARGUMENTS
    module = device.load_module(bytes(kernel.kernel), name)
    function = device.get_function(module, name)
    try:
        yield lambda grid, stream: device.launch(function, grid, stream, block)
    finally:
        device.unload_module(module)


@CHECKS.check(
    "launch-grid",
    "The hook `launch` passes the arguments, and runs every program of grids of one to three counts.",
)
def _launch_grid(context: Context) -> None:
    for grid in ((7,), (3, 5), (2, 3, 4), (1, 1, 3)):
        x, y, z = (*grid, 1, 1)[:3]
        out = context.array(np.zeros(x * y * z, np.int64), "i64")
        with _hooked(context, out, x, y) as launch:
            launch(grid, 0)
        k, j, i = np.indices((z, y, x))
        expected = (i + 10 * j + 100 * k + 1).reshape(-1).astype(np.int64)
        context.compare(f"what the programs of grid {grid} stored", identical(context.read(out), expected))


@CHECKS.check(
    "launch-stream",
    "The hook `launch` starts a kernel after the preceding kernel on its stream.",
    needs=("feature:streams",),
)
@at_two_paces
def _launch_stream(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, _hooked(context, out, 1, 1) as launch:
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), ODD)
        launch((1,), stream)
        device.synchronize(stream)
        found = context.read(out)[:1]
        context.compare("what the second stored", identical(found, np.array([1], np.int64)))


_GRIDS: dict[str, tuple[int, ...]] = {
    "none": (),
    "four": (1, 1, 1, 1),
    "negative": (-1,),
    "negative-z": (2, 2, -3),
    "2-to-32": (1 << 32,),
}


def _bad_grid(context: Context, grid: tuple[int, ...]) -> None:
    device = context.device
    binary, name = _empty(context)
    module = device.load_module(binary, name)
    function = device.get_function(module, name)
    try:
        context.refuses(
            f"launch with grid {grid}",
            lambda: device.launch(function, grid, 0, NO_ARGUMENTS),
            (LaunchError, ValueError, OverflowError),
        )
        device.launch(function, (1,), 0, NO_ARGUMENTS)
        device.synchronize()
    finally:
        device.unload_module(module)


for _kind, _grid in _GRIDS.items():
    CHECKS.add(
        f"grid-{_kind}-refused",
        f"The hook `launch` refuses the grid {_grid}, which does not have one to three valid counts of programs.",
        partial(_bad_grid, grid=_grid),
    )


@CHECKS.check(
    "unload-waits",
    "Unloading a module lets launches of its kernel that are in flight end.",
    needs=("feature:streams",),
)
def _unload_waits(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    stream = device.create_stream()
    for _ in range(20):
        module = device.load_module(binary, name)
        function = device.get_function(module, name)
        for _ in range(5):
            device.launch(function, (1000,), stream, NO_ARGUMENTS)
        device.unload_module(module)
    device.synchronize(stream)
    device.destroy_stream(stream)
    context.expect(True, "100 launches of 20 modules ended")


@CHECKS.check(
    "many",
    "200 modules, or 20 if the runtime compiles them, can be loaded at the same time, and all of them work.",
)
def _many(context: Context) -> None:
    device = context.device
    binary, name = _empty(context)
    count = 20 if device.properties().modules_are_source else 200
    modules = [device.load_module(binary, name) for _ in range(count)]
    functions = [device.get_function(module, name) for module in modules]
    for function in functions:
        device.launch(function, (2,), 0, NO_ARGUMENTS)
    device.synchronize()
    for module in modules:
        device.unload_module(module)
    context.expect(len({*functions}) == count, f"{count} handles of functions differ", f"{len({*functions})}")


@CHECKS.check("through-triton", "The driver's own loader, which Triton calls, loads a kernel.")
def _through_triton(context: Context) -> None:
    out = context.array(np.zeros(5, np.int64), "i64")
    kernel = make_kernel(COUNT).warmup(out, grid=(1,))
    utils = context.driver.utils
    found = utils.load_binary(kernel.metadata.name, kernel.kernel, kernel.metadata.shared, 0)
    context.expect(
        isinstance(found, tuple) and len(found) == 5,
        "load_binary gives a module, a function, registers, spills, and the most threads",
        f"{found!r}",
    )
    context.expect(
        found[4] >= kernel.metadata.num_warps, "the most threads are not fewer than its warps", str(found)
    )
    utils.unload_module(found[0])
    context.refuses("unload_module again", lambda: utils.unload_module(found[0]), Exception)

"""Hooks, streams, threads, forks: what happens around a launch."""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cpu_kernels
import numpy as np
import pytest
import triton
from cpu_kernels import add_constant, below
from cpu_scripts import Script
from triton import knobs
from triton.runtime import driver

from triton_porting_kit.errors import LaunchError
from triton_porting_kit.toolchain import compat

Array = Callable[..., Any]


# --- hooks -------------------------------------------------------------------------------------------


def describe(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"{metadata.name}<{grid[0]}>", "elements": args["n"]}


described = triton.jit(launch_metadata=describe)(add_constant.fn)


def test_launch_hooks_get_the_launch_metadata(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    x = array([0.0] * 8)
    seen: list[Any] = []
    monkeypatch.setattr(
        knobs.runtime, "launch_enter_hook", lambda data: seen.append(("enter", data.get(), x.numpy()[0]))
    )
    monkeypatch.setattr(
        knobs.runtime, "launch_exit_hook", lambda data: seen.append(("exit", data.get(), x.numpy()[0]))
    )
    kernel = described[(1,)](x, 8, AMOUNT=1, BLOCK=8)
    assert [(when, value) for when, _, value in seen] == [("enter", 0), ("exit", 1)]
    data = seen[0][1]
    assert data["name"] == "add_constant<1>"
    assert data["elements"] == 8
    assert data["function"] == kernel.function
    assert data["stream"] == 0
    assert seen[1][1] == data


def test_a_failing_hook_fails_the_launch(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: Any) -> None:
        raise RuntimeError("no launches today")

    x = array([0.0] * 8)
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", fail)
    with pytest.raises(RuntimeError, match="no launches today"):
        add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8)
    assert not x.numpy().any()


def test_jit_hooks(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    x, seen = array([0.0] * 8), []

    def before(**info: Any) -> bool:
        options = info["compile"]
        seen.append(("before", info["fn"].name, options["num_warps"], options["extern_libs"]))
        return False

    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", before)
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", lambda **info: seen.append("after"))
    for _ in range(2):
        add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8, num_warps=2, extern_libs={"m": "/m.bc"})
    assert seen == [("before", "add_constant", 2, (("m", "/m.bc"),)), "after"]
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", lambda **info: True)  # do not compile
    add_constant[(1,)](x, 8, AMOUNT=2, BLOCK=8)
    assert (x.numpy() == 2).all()


def test_load_and_unload_hooks(array: Array, monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    gc.collect()  # kernels of earlier tests are unloaded now
    seen = []
    names = ["kernel_load_start_hook", "kernel_load_end_hook"]
    if compat.unloads_modules():
        names.append("kernel_unload_hook")
    for name in names:
        monkeypatch.setattr(
            knobs.runtime, name, lambda *info, name=name: seen.append((name, info[0], info[2]))
        )
    kernel = add_constant[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8)
    module, modules = kernel.module, len(device._modules)
    add_constant.device_caches.clear()
    del kernel
    assert seen == [
        (name, module if "end" in name or "unload" in name else None, "add_constant") for name in names
    ]
    assert len(device._modules) == modules - compat.unloads_modules()


def test_preload(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    data: list[str] = []
    monkeypatch.setattr(
        knobs.runtime, "jit_cache_hook", lambda **info: data.append(info["compile"]["specialization_data"])
    )
    x = array([0.0] * 8)
    add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8)
    hits: list[bool] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **seen: hits.append(seen["cache_hit"]))
    add_constant.device_caches.clear()
    kernel = add_constant.preload(data[0])
    assert hits == [True]
    assert kernel.metadata.name == "add_constant"


def test_pre_run_hook(array: Array) -> None:
    kernel = triton.jit(add_constant.fn)
    seen = []
    kernel.add_pre_run_hook(lambda *args, **options: seen.append(args[1]))
    kernel[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8)
    assert seen == [8]


# --- streams -----------------------------------------------------------------------------------------


def test_a_created_stream_is_asynchronous_and_ordered(array: Array, device: Any) -> None:
    from triton.runtime import driver

    flag, x = array(np.zeros(1, np.int32)), array([0.0] * 8)
    stream = device.create_stream()
    with driver.active.stream(stream):
        cpu_kernels.wait_for[(1,)](flag)
        for amount in (1, 2):
            add_constant[(1,)](x, 8, AMOUNT=amount, BLOCK=8)
    assert not x.numpy().any()  # the launches came back, what they launched waits
    flag.fill_(1)
    device.synchronize(stream)
    assert (x.numpy() == 3).all()
    device.destroy_stream(stream)


def test_a_compiled_kernel_takes_a_stream(array: Array, device: Any) -> None:
    x = array([0.0] * 8)
    kernel = add_constant.warmup(x, 8, AMOUNT=1, BLOCK=8, grid=(1,))
    stream = device.create_stream()
    kernel[(1, 1, 1)](x, 8, 1, 8, stream=stream)
    device.synchronize(stream)
    assert (x.numpy() == 1).all()
    device.destroy_stream(stream)
    with pytest.raises(LaunchError, match="stream"):
        kernel[(1, 1, 1)](x, 8, 1, 8, stream=stream)


def test_the_default_stream_is_done_when_the_launch_returns(array: Array) -> None:
    x = array([0.0] * 100_000)
    in_place = np.from_dlpack(x)
    for count in range(1, 20):
        add_constant[(782,)](x, 100_000, AMOUNT=1, BLOCK=128)
        assert (in_place == count).all()


# --- threads and processes ---------------------------------------------------------------------------


@pytest.fixture
def parsing_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one thread parse Python at a time.

    CPython 3.11 keeps one count of the depth of `ast.parse` for all threads, and rarely takes another thread's for a
    mistake: a SystemError (python/cpython#106905). Triton parses each kernel that it compiles.
    """
    parse, turn = ast.parse, threading.Lock()

    def parse_in_turn(*args: Any, **kwargs: Any) -> ast.AST:
        with turn:
            return parse(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", parse_in_turn)


@pytest.mark.usefixtures("parsing_in_turn")
def test_threads_compile_and_launch_at_once(array: Array) -> None:
    count, errors = 6, []
    arrays = [array([0.0] * 40) for _ in range(count)]
    start = threading.Barrier(count)

    def work(x: Any, number: int) -> None:
        try:
            start.wait()
            for amount in (1, number + 2, 1):  # two that all share, and one of its own
                add_constant[(2,)](x, 40, AMOUNT=amount, BLOCK=32)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(x, i)) for i, x in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    for i, x in enumerate(arrays):
        assert (x.numpy() == i + 4).all()


@pytest.mark.usefixtures("parsing_in_turn")
def test_async_compile_mode(array: Array) -> None:
    x = array([0.0] * 40)
    with ThreadPoolExecutor(3) as pool, triton.AsyncCompileMode(pool):
        for amount in range(1, 5):
            add_constant.warmup(x, 40, AMOUNT=amount, BLOCK=32, grid=(1,))
    for amount in range(1, 5):
        add_constant[(2,)](x, 40, AMOUNT=amount, BLOCK=32)
    assert (x.numpy() == 10).all()


def test_fork(script: Script) -> None:
    script("""
import multiprocessing, os
x = array([0.0] * 8)
for _ in range(3):
    add_constant[(8,)](x, 8, AMOUNT=1, BLOCK=1)
stream = driver.active.device.create_stream()
with driver.active.stream(stream):
    add_constant[(8,)](x, 8, AMOUNT=1, BLOCK=1)
driver.active.device.synchronize(stream)

def child():
    y = array([0.0] * 8)
    add_constant[(8,)](x, 8, AMOUNT=1, BLOCK=1)      # loaded in the parent
    add_constant[(8,)](y, 8, AMOUNT=5, BLOCK=1)      # compiled in the child
    with driver.active.stream(driver.active.device.create_stream()) as stream:
        add_constant[(8,)](y, 8, AMOUNT=5, BLOCK=1)
        driver.active.device.synchronize(stream)
    assert (x.numpy() == 5).all() and (y.numpy() == 10).all()

pid = os.fork()
if pid == 0:
    status = 1
    try:
        child()
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(50)
assert process.exitcode == 0
add_constant[(8,)](x, 8, AMOUNT=1, BLOCK=1)
assert (x.numpy() == 5).all()
""")


REFUSE_PROGRAMS = """
import os, sys
os.environ["PATH"] = ""
os.environ.pop("CXX", None), os.environ.pop("CC", None)
FORBIDDEN = ("subprocess.Popen", "pty.spawn", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
             "os.forkpty")

def refuse(event, arguments):
    if event in FORBIDDEN:
        sys.stderr.write(f"program started: {event} {arguments}\\n")
        os._exit(42)

sys.addaudithook(refuse)
"""


def test_no_program_takes_part(script: Script) -> None:
    source = """
x = array([0.0] * 40)
add_constant[(2,)](x, 37, AMOUNT=1, BLOCK=32)
assert (x.numpy() == [1.0] * 37 + [0.0] * 3).all()
add_constant[(2,)](x, 40, AMOUNT=1, BLOCK=32, num_warps=8)
driver.active.utils.get_device_properties(0)
print("done")
"""
    assert script(source, before=REFUSE_PROGRAMS).strip() == "done"
    result = script.run("import subprocess; subprocess.run(['/bin/true'])", before=REFUSE_PROGRAMS)
    assert result.returncode == 42


def test_kernels_are_found_under_any_name_of_the_device(array: Array) -> None:
    x = array([0.0] * 40)
    function = triton.jit(add_constant.fn)
    by_torch = function.device_caches["cpu"][0]  # what torch.cpu.current_device() says
    kernels = [function[(2,)](x, 37, AMOUNT=1, BLOCK=size) for size in (32, 64)]
    assert list(by_torch.values()) == kernels
    for name in (0, driver.active.get_current_device()):
        assert function.device_caches[name][0] is by_torch


def test_launchers_are_wrapped_in_a_context_only(array: Array) -> None:
    """Also those of kernels that were loaded before it."""
    seen = []

    def wrap(kernel: Any, launcher: Any) -> Any:
        def call(*given: Any, **hidden: Any) -> Any:
            seen.append(kernel.name)
            return launcher(*given, **hidden)

        return call

    def launch() -> None:
        add_constant[(1,)](array([1.0] * 8), 8, AMOUNT=1, BLOCK=8)

    launch()
    with compat.wrapped_launchers(wrap):
        launch()
    launch()
    assert seen == ["add_constant"]


# --- versions for indices that wrap around -----------------------------------------------------------


@pytest.mark.parametrize("by_file", [False, True])
def test_a_kernel_from_a_file_has_a_version_too(array: Array, tmp_path: Path, by_file: bool) -> None:
    x, out = array([*map(float, range(32))]), array([0.0] * 32)
    compiled = below[(1,)](x, out, 8, 0, BLOCK=32)
    if by_file:
        path = tmp_path / "below.ttir"
        path.write_text(compiled.asm["ttir"])
        kernel = triton.compile(str(path))
        path.unlink()
        kernel[(1, 1, 1)](x, out, 2**31 - 8, 2**31 - 16)
    else:
        below[(1,)](x, out, 2**31 - 8, 2**31 - 16, BLOCK=32)
    # What wraps around is below `n`, too.
    np.testing.assert_array_equal(out.numpy(), [*range(8), *[-1] * 8, *range(16, 32)])


def test_a_reset_does_not_unload_versions_twice(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    below[(1,)](array([0.0] * 32), array([0.0] * 32), 2**31 - 8, 2**31 - 16, BLOCK=32)
    driver.active.device.reset()
    gc.collect()
    assert unraisable == []


# --- resets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_kernels_are_loaded_again_after_a_reset(array: Array, frozen: bool) -> None:
    """Also if the program keeps its objects out of garbage collection, as servers do that fork."""
    before = array([1.0] * 8)
    kernel = add_constant[(1,)](before, 8, AMOUNT=1, BLOCK=8)
    old = kernel.function
    if frozen:
        gc.freeze()
    try:
        driver.active.device.reset()
        assert (gc.get_freeze_count() > 0) >= frozen
    finally:
        if frozen:
            gc.unfreeze()
    for expected in (3.0, 4.0):
        x = array([expected - 1] * 8)
        again = add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8)
        np.testing.assert_array_equal(x.numpy(), np.full(8, expected, np.float32))
    assert again is kernel
    assert again.function != old
    assert driver.active.device.on_reset is not None

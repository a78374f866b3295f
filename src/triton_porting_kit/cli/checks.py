"""The checks of `tpk doctor`. Each imports what it needs itself, so a failure does not hide the others."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from triton_porting_kit.cli.findings import Check, Finding, Status, describe
from triton_porting_kit.cli.requirements import tried_range, within
from triton_porting_kit.cli.torch_checks import torch

_CPU_FEATURES = ("avx2", "fma", "avx512f", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16", "neon", "sve")


def python() -> Iterator[Finding]:
    """The interpreter and the kit's own installation."""
    import triton_porting_kit

    version = platform.python_version()
    ok = sys.version_info >= (3, 11)
    yield Finding(
        "Python",
        Status.OK if ok else Status.PROBLEM,
        f"{version}, {sys.executable}",
        "" if ok else "the kit needs Python 3.11 or later",
    )
    yield Finding(
        "the kit", Status.OK, f"{triton_porting_kit.__version__}, {Path(triton_porting_kit.__file__).parent}"
    )


def triton() -> Iterator[Finding]:
    """Triton, and whether its release is tested."""
    tried = tried_range("triton")
    install = f"run `pip install 'triton{tried}'`"
    try:
        import triton
    except ModuleNotFoundError as error:
        yield Finding("Triton", Status.PROBLEM, describe(error), install)
        return
    except Exception as error:
        yield Finding(
            "Triton",
            Status.PROBLEM,
            f"it is installed, but importing it fails: {describe(error)}",
            f"{install}; if the message names a backend's package, repair or uninstall that package",
        )
        return
    known = within(triton.__version__, tried)
    yield Finding(
        "Triton",
        Status.OK if known else Status.NOTE,
        f"{triton.__version__}, {'within' if known else 'outside'} the tested range {tried}",
        "" if known else install,
    )


def mlir() -> Iterator[Finding]:
    """The MLIR bindings."""
    try:
        from triton_porting_kit.toolchain import mlir, mlir_bindings

        mlir.make_context()
        yield Finding("MLIR bindings", Status.OK, mlir_bindings.version())
    except Exception as error:
        remedy = f"run `pip install 'numba-cuda-mlir{tried_range('numba-cuda-mlir')}'`"
        yield Finding("MLIR bindings", Status.PROBLEM, describe(error), remedy)


def llvm() -> Iterator[Finding]:
    """llvmlite and its LLVM."""
    try:
        from triton_porting_kit.toolchain import llvm

        yield Finding("LLVM", Status.OK, f"llvmlite {llvm.version()}")
    except Exception as error:
        remedy = f"run `pip install 'llvmlite{tried_range('llvmlite')}'`"
        yield Finding("LLVM", Status.PROBLEM, describe(error), remedy)


def numpy() -> Iterator[Finding]:
    """NumPy."""
    try:
        import numpy

        yield Finding("NumPy", Status.OK, numpy.__version__)
    except Exception as error:
        yield Finding("NumPy", Status.PROBLEM, describe(error), "run `pip install numpy`")


def native_parts() -> Iterator[Finding]:
    """The extension modules of the kit."""
    import triton_porting_kit.driver.hip._hip
    import triton_porting_kit.driver.host._host
    import triton_porting_kit.launcher._packed  # noqa: F401

    yield Finding("native parts", Status.OK, "the host device, the HIP device and the packed launcher load")


def hip() -> Iterator[Finding]:
    """HIP's runtime library for AMD GPUs: where it is or was searched for, and the devices that it finds."""
    from triton_porting_kit.driver.hip import REMEDY, find_library, open_library

    search = find_library()
    if search.path is None:
        named = len(search.places) == 1  # The user named one place, so no other was searched.
        yield Finding("HIP", Status.PROBLEM if named else Status.NOTE, search.report(), REMEDY)
        return
    try:
        library = open_library()
        version, count = library.version(), library.device_count()
        devices = [library.properties(index) for index in range(count)]
    except Exception as error:
        yield Finding("HIP", Status.PROBLEM, describe(error).partition(". What to do:")[0], REMEDY)
        return
    found = f"{search.report()}; version {version // 10**7}.{version // 10**5 % 100}.{version % 10**5}"
    if not devices:
        yield Finding(
            "HIP",
            Status.NOTE,
            f"{found}; it finds no device",
            "load the Linux driver amdgpu, make sure that you can open /dev/kfd and /dev/dri/renderD* (groups render "
            "and video), and check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES",
        )
        return
    listed = ", ".join(
        f"{device['name'] or 'no name'} ({device['target_id']}, {device['memory_bytes'] >> 30} GiB)"
        for device in devices
    )
    yield Finding("HIP", Status.OK, f"{found}; {listed}")


def opencl() -> Iterator[Finding]:
    """OpenCL's loader and the devices of the installed drivers."""
    from triton_porting_kit.driver.opencl import (
        REMEDY,
        device_infos,
        find_library,
        has_platforms,
        open_library,
    )

    if not has_platforms():
        found = find_library() or "no libOpenCL.so.1"
        yield Finding("OpenCL", Status.NOTE, f"{found}; no driver is installed", REMEDY)
        return
    try:
        path, infos = open_library().path, device_infos()
    except Exception as error:
        yield Finding("OpenCL", Status.PROBLEM, describe(error).partition(". What to do:")[0], REMEDY)
        return
    listed = ", ".join(
        f"{info.platform}: {info.name} ({info.version.split()[1]}, driver {info.driver}, {info.memory_bytes >> 30} GiB"
        + ("" if info.shares_memory else ", buffers")
        + ")"
        for info in infos
    )
    status = Status.OK if infos else Status.NOTE
    yield Finding(
        "OpenCL", status, f"{path}; {listed or 'its drivers find no device'}", "" if listed else REMEDY
    )


def cpp_compiler() -> Iterator[Finding]:
    """The compiler for generated launch code."""
    try:
        from triton_porting_kit.launcher.build import find_compiler

        yield Finding("C++ compiler", Status.OK, " ".join(find_compiler()))
    except Exception as error:
        yield Finding(
            "C++ compiler",
            Status.NOTE,
            str(error),
            "needed only for generated launch code: install g++ or clang++, or set CXX",
        )


def processor() -> Iterator[Finding]:
    """The CPU and its vector features."""
    from triton_porting_kit.compiler import CpuTarget

    host = CpuTarget.host()
    there = ", ".join(name for name in _CPU_FEATURES if name in host.features) or "no vector features"
    without = os.environ.get("TPK_CPU_WITHOUT", "")
    limits = f"; TPK_CPU_WITHOUT removes {without}" if without else ""
    yield Finding("CPU", Status.OK, f"{_cpu_name()} (as {host.cpu}); {there}; caches {host.caches}{limits}")


def threads() -> Iterator[Finding]:
    """The number of threads that kernels use: the cores of this process, or TPK_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0))
    asked = os.environ.get("TPK_NUM_THREADS", "")
    if not asked:
        yield Finding("threads", Status.OK, f"{cores}, one for each core that this process may use")
    elif not asked.isdecimal() or not 1 <= int(asked) <= 1024:
        yield Finding(
            "threads",
            Status.PROBLEM,
            f"TPK_NUM_THREADS is {asked!r}",
            "set it to a count from 1 to 1024, or unset it to use every core",
        )
    else:
        more = int(asked) > cores
        yield Finding(
            "threads",
            Status.NOTE if more else Status.OK,
            f"{asked}, set by TPK_NUM_THREADS; this process may use {cores} cores",
            "more threads than cores share the cores: set TPK_NUM_THREADS to at most the number of cores"
            if more
            else "",
        )


def cache() -> Iterator[Finding]:
    """The folder of compiled kernels, and who can write to it."""
    from triton_porting_kit import trust
    from triton_porting_kit.errors import InsecureCacheError
    from triton_porting_kit.toolchain import compat

    folder = compat.cache_root()
    remedy = "remove the permission (chmod), or set TRITON_CACHE_DIR to a folder that only you can write to"
    try:
        trust.check_way(folder, remedy)
        trust.check_private(folder.resolve(), remedy, group_may_write=True)
    except InsecureCacheError as error:
        yield Finding("compile cache", Status.PROBLEM, str(error).removesuffix(f"; {remedy}"), remedy)
        return
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            "compile cache",
            Status.NOTE,
            f"{folder} cannot be written: every process compiles again what is not cached there",
            f"give yourself write permission on {existing}, or set TRITON_CACHE_DIR to a folder of your own",
        )
    elif existing == folder and trust.group_can_write(folder.resolve()):
        yield Finding(
            "compile cache",
            Status.NOTE,
            f"the group of {folder} can write to it and replace the code in it",
            f"run `chmod g-w {folder}` unless this is intended",
        )
    elif existing == folder:
        yield Finding("compile cache", Status.OK, f"{folder}, mode {folder.stat().st_mode & 0o777:o}")
    else:
        yield Finding("compile cache", Status.OK, f"{folder}, not created yet")


def backends() -> Iterator[Finding]:
    """The backends that Triton found, and the active one."""
    from triton.backends import backends as registered

    active = []
    for name, backend in sorted(registered.items()):
        try:
            if backend.driver.is_active():
                active.append(name)
        except Exception as error:
            yield Finding(f"backend {name}", Status.NOTE, f"is_active() failed: {describe(error)}")
    known = ", ".join(sorted(registered))
    if "cpu" not in registered:
        yield Finding(
            "backends",
            Status.PROBLEM,
            f"Triton found {known}, but not the kit's backend cpu",
            "the kit's entry points are not installed: install the kit again with `pip install`, and unset "
            "TRITON_BACKENDS_IN_TREE",
        )
    else:
        yield Finding("backends", Status.OK, f"{known} are registered")
    yield active_backend(active, known)


def active_backend(active: list[str], known: str) -> Finding:
    """The backend that Triton uses. `active`: backends with a device. `known`: all registered ones, as text."""
    from triton_porting_kit.toolchain import compat

    selected = os.environ.get("TRITON_DEFAULT_BACKEND", "")
    remedy = f"set TRITON_DEFAULT_BACKEND to one of {known}"
    if selected:
        if selected not in known.split(", "):
            return Finding(
                "active backend",
                Status.PROBLEM,
                f"TRITON_DEFAULT_BACKEND is {selected}, which is not registered",
                remedy,
            )
        if selected not in active:
            return Finding(
                "active backend",
                Status.PROBLEM,
                f"TRITON_DEFAULT_BACKEND is {selected}, which finds no device",
                "unset TRITON_DEFAULT_BACKEND, or make the device available",
            )
        if len(active) > 1 and not compat.reads_default_backend():
            return Finding(
                "active backend",
                Status.PROBLEM,
                f"this release of Triton does not read TRITON_DEFAULT_BACKEND, and {' and '.join(active)} are active",
                "hide the GPUs (CUDA_VISIBLE_DEVICES= or HIP_VISIBLE_DEVICES=), select the backend in Python with "
                f'triton.runtime.driver.set_active(triton.backends.backends["{selected}"].driver()), or install '
                "Triton 3.7 or later",
            )
        return Finding("active backend", Status.OK, f"{selected}, set by TRITON_DEFAULT_BACKEND")
    if len(active) != 1:
        listed = (
            f"{len(active)} backends have a device: {', '.join(active)}"
            if active
            else "no backend has a device"
        )
        return Finding("active backend", Status.PROBLEM, listed, remedy)
    reason = ", because no other backend has a device" if active == ["cpu"] else ", which has a device"
    return Finding("active backend", Status.OK, f"{active[0]}{reason}")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


CHECKS: dict[str, Check] = {
    "Python": python,
    "Triton": triton,
    "MLIR bindings": mlir,
    "LLVM": llvm,
    "NumPy": numpy,
    "torch": torch,
    "native parts": native_parts,
    "C++ compiler": cpp_compiler,
    "CPU": processor,
    "threads": threads,
    "HIP": hip,
    "OpenCL": opencl,
    "compile cache": cache,
    "backends": backends,
}
"""The checks by name. An exception is reported under the name of its check."""

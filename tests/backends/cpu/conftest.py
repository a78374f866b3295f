"""A fresh cache for every test, arrays, and kernels that run in a process of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_scripts import Script


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compile cache of this test, empty; no other setting of the user's reaches it."""
    for name in list(os.environ):
        if name.startswith(("TRITON_", "TPK_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    return folder


@pytest.fixture(autouse=True)
def fresh_kernels(cache: Path) -> None:
    """Let kernels forget what they were compiled to in earlier tests."""
    import cpu_kernels
    import debug_kernels
    from triton.runtime.jit import JITFunction

    for kernel in (*vars(cpu_kernels).values(), *vars(debug_kernels).values()):
        if isinstance(kernel, JITFunction):
            kernel.device_caches.clear()


@pytest.fixture
def device() -> Any:
    """The active driver's device."""
    from triton.runtime import driver

    return driver.active.device


def _host(values: Any) -> Any:
    host = np.asarray(values)
    return host.astype(np.float32) if isinstance(values, list) and host.dtype == np.float64 else host


@pytest.fixture
def array(device: Any) -> Callable[..., Any]:
    """`array(values, dtype)`: a device array of these values, float32 where they are Python's floats."""
    from triton_porting_kit.driver import DeviceArray

    def make(values: Any, dtype: str | None = None) -> DeviceArray:
        return DeviceArray.from_numpy(_host(values), device, dtype)

    return make


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.fixture(scope="session")
def built_launchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("launchers")


@pytest.fixture(params=["packed", "generated", "python"])
def launcher(
    request: pytest.FixtureRequest, device: Any, built_launchers: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Launch by each of the kit's launchers."""
    from triton.runtime import driver

    from triton_porting_kit.launcher import GeneratedLauncher, PackedLauncher, PythonLauncher

    monkeypatch.setenv("TPK_CACHE_DIR", str(built_launchers))
    made: list[Any] = []

    def make(driver: Any, source: Any, metadata: Any) -> Any:
        if request.param == "python":
            made.append(PythonLauncher(source, metadata, device.launch))
        else:
            strategy = GeneratedLauncher if request.param == "generated" else PackedLauncher
            made.append(strategy(source, metadata, device.launch_entry()))
        return made[-1]

    # Of the class: what an object itself is given back hides its class's ever after.
    monkeypatch.setattr(type(driver.active), "launcher_cls", make)
    return str(request.param)

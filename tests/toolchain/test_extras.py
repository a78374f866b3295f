"""``triton.language.extra.<backend>``: importable under every name that libraries use, and cheap until it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import cpu
from triton.language.extra.cpu import libdevice
from triton.language.extra.cpu.libdevice import cbrt

from triton_porting_kit.compiler import Pipeline, PipelineBackend
from triton_porting_kit.driver import DeviceArray


@triton.jit
def named_kernel(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, libdevice.cbrt(x))
    tl.store(O + B + i, cbrt(x))
    tl.store(O + 2 * B + i, cpu.libdevice.cbrt(x))
    tl.store(O + 3 * B + i, tl.extra.cpu.libdevice.cbrt(x))


@pytest.mark.usefixtures("cpu_backend")
def test_kernels_call_functions_by_every_name() -> None:
    device = triton.runtime.driver.active.device
    x = np.linspace(-4, 4, 32, dtype=np.float32)
    out = DeviceArray.empty((4, 32), "float32", device)
    named_kernel[(1,)](DeviceArray.from_numpy(x, device), out, B=32)
    np.testing.assert_allclose(out.numpy(), np.cbrt([x.astype(np.float64)] * 4), rtol=2.0**-22)


def test_libraries_import_it_by_the_name_of_the_device() -> None:
    module = importlib.import_module("triton.language.extra.cpu.libdevice")
    assert module is libdevice is cpu.libdevice
    own = importlib.import_module("triton_porting_kit.backends.cpu.libdevice")
    assert {name: getattr(module, name) for name in own.__all__} == {
        name: getattr(own, name) for name in own.__all__
    }
    # It is not the module of the kit itself: other names of that one are not part of the interface.
    assert not hasattr(module, "common_type")


def test_every_backend_of_the_kit_is_there() -> None:
    amd = importlib.import_module("triton.language.extra.amdgpu.libdevice")
    hip = importlib.import_module("triton.language.extra.hip.libdevice")
    assert amd.erf is hip.erf


def test_other_modules_and_names_are_not() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"triton\.language\.extra\.cpu\.utils"):
        importlib.import_module("triton.language.extra.cpu.utils")
    with pytest.raises(AttributeError, match=r"'triton.language.extra.cpu' has no attribute 'utils'"):
        _ = cpu.utils
    with pytest.raises(ModuleNotFoundError, match=r"triton\.language\.extra\.nosuchchip"):
        importlib.import_module("triton.language.extra.nosuchchip")


class _Named(PipelineBackend):
    """A compiler that only has a name."""

    @staticmethod
    def supports_target(target: Any) -> bool:
        return False

    def pipeline(self, options: Any) -> Pipeline:
        raise NotImplementedError

    def default_options(self) -> dict[str, Any]:
        return {}

    def version(self) -> str:
        return ""


class _Shadowing(_Named):
    name: ClassVar[str] = "cuda"

    @classmethod
    def libdevice(cls) -> ModuleType:
        raise AssertionError("Triton has a folder of this name")


class _Plain(_Named):
    name: ClassVar[str] = "plainchip"


def test_folders_of_triton_take_precedence() -> None:
    found = importlib.reload(importlib.import_module("triton.language.extra.cuda.libdevice"))
    assert "language/extra/cuda" in str(found.__file__)


def test_a_backend_without_functions_has_no_libdevice() -> None:
    package = importlib.import_module("triton.language.extra.plainchip")
    assert tl.extra.plainchip is package
    assert not hasattr(package, "libdevice")
    with pytest.raises(ModuleNotFoundError, match=r"triton\.language\.extra\.plainchip\.libdevice"):
        importlib.import_module("triton.language.extra.plainchip.libdevice")


def test_importing_triton_builds_no_functions() -> None:
    script = """
import sys, triton.language as tl
assert tl.extra.cpu.__path__ == []
built = [name for name in sys.modules if name.endswith(("cpu.libdevice", "amdgpu.libdevice"))]
assert not built, built
assert callable(tl.extra.cpu.libdevice.erf)
"""
    subprocess.run([sys.executable, "-c", script], check=True)

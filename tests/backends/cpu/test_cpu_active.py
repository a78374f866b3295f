"""When `import triton` takes the CPU backend, and when it leaves the machine to another."""

from __future__ import annotations

import pytest
from cpu_scripts import Script

from triton_porting_kit.toolchain import compat

ACTIVE = "print(type(driver.active).__name__, driver.active.get_current_target().backend)"

FOREIGN = """
from triton.backends import backends
backends["nvidia"].driver.is_active = staticmethod(lambda: {active})
"""

OTHER = """
import dataclasses
from triton.backends import backends
from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver

class Driver(CPUDriver):
    backend_name = "{name}"
    fallback = {fallback}

backends["{name}"] = dataclasses.replace(backends["cpu"], driver=Driver)
"""


def test_without_a_gpu(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    assert script(ACTIVE) == "CPUDriver cpu\n"


def test_by_name(script: Script) -> None:
    assert script(ACTIVE, TRITON_DEFAULT_BACKEND="cpu") == "CPUDriver cpu\n"


@pytest.mark.skipif(
    not compat.reads_default_backend(), reason="Triton reads TRITON_DEFAULT_BACKEND since 3.7"
)
def test_by_name_where_another_is_active(script: Script) -> None:
    assert script(FOREIGN.format(active=True) + ACTIVE, TRITON_DEFAULT_BACKEND="cpu") == "CPUDriver cpu\n"


@pytest.mark.parametrize("name", ["nvidia", "amd"])
def test_another_name(name: str, script: Script) -> None:
    source = "from triton.backends import backends; print(backends['cpu'].driver.is_active())"
    assert script(source, TRITON_DEFAULT_BACKEND=name) == "False\n"
    result = script.run(ACTIVE, TRITON_DEFAULT_BACKEND=name)
    expected = f"'{name}' is not active" if compat.reads_default_backend() else "0 active drivers"
    assert expected in result.stderr.splitlines()[-1]


def test_an_unknown_name(script: Script) -> None:
    result = script.run(ACTIVE, TRITON_DEFAULT_BACKEND="nonsense")
    expected = "Unknown backend device 'nonsense'" if compat.reads_default_backend() else "0 active drivers"
    assert expected in result.stderr.splitlines()[-1]


def test_a_foreign_driver_that_is_active_goes_first(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    source = FOREIGN.format(active=True) + "print([n for n, b in backends.items() if b.driver.is_active()])"
    assert script(source) == "['nvidia']\n"
    assert script(FOREIGN.format(active="1 // 0") + "print(backends['cpu'].driver.is_active())") == "True\n"


@pytest.mark.parametrize(
    ("name", "fallback", "expected"),
    [("zebra", True, "cpu"), ("ant", True, "ant"), ("zebra", False, "zebra")],
)
def test_exactly_one_of_the_kits_backends(
    name: str, fallback: bool, expected: str, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    source = OTHER.format(name=name, fallback=fallback)
    source += "print([n for n, b in backends.items() if b.driver.is_active()])"
    assert script(source) == f"['{expected}']\n"


def test_where_triton_does_not_know_the_variable(script: Script) -> None:
    """Triton 3.6 asks every driver whether it is active, whatever the variable says."""
    chosen = """
from triton.backends import backends
active = [name for name, backend in backends.items() if backend.driver.is_active()]
print(active)
"""
    other = OTHER.format(name="zebra", fallback=True)
    assert script(other + chosen, TRITON_DEFAULT_BACKEND="zebra") == "['zebra']\n"
    assert script(other + chosen, TRITON_DEFAULT_BACKEND="cpu") == "['cpu']\n"
    assert script(other + chosen, TRITON_DEFAULT_BACKEND="nvidia") == "[]\n"


def test_importing_triton_opens_and_loads_nothing(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    source = """
import sys
heavy = ("llvmlite", "numba_cuda_mlir", "torch", "triton_porting_kit.driver.host")
print([name for name in heavy if name in sys.modules])
"""
    assert (
        script(source, before="import triton\n" + source.replace("print", "assert not ").strip() + "\n")
        == "[]\n"
    )

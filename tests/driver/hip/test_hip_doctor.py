"""What `tpk doctor` says of HIP where its library is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from standin_library import Standin

from triton_porting_kit.cli.checks import hip
from triton_porting_kit.cli.findings import Finding, Status
from triton_porting_kit.driver.hip import library


@pytest.fixture
def named(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(standin.path))


def found() -> Finding:
    (finding,) = hip()
    return finding


def test_having_no_library_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in library.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(library, "NAME", "libnothip64.so")
    monkeypatch.setattr(library, "_SONAMES", ("libnothip64.so",))
    finding = found()
    assert finding.status is Status.NOTE
    assert f"ROCM_PATH: {tmp_path}/lib/libnothip64.so;" in finding.detail
    assert "set TPK_HIP_LIBRARY" in finding.remedy


@pytest.mark.parametrize("content", [None, "not a library"])
def test_naming_a_file_that_is_none_is_a_problem(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "named.so"
    if content:
        path.write_text(content)
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(path))
    finding = found()
    assert finding.status is Status.PROBLEM
    assert str(path) in finding.detail
    assert "What to do" not in finding.detail


@pytest.mark.usefixtures("named")
def test_devices_are_listed(standin: Standin) -> None:
    standin.configure("gfx942", "gfx1100")
    finding = found()
    assert finding.status is Status.OK
    assert f"{standin.path}, found by: TPK_HIP_LIBRARY; version 7." in finding.detail
    assert "Stand-in gfx942" in finding.detail
    assert "(gfx1100, 1 GiB)" in finding.detail


@pytest.mark.usefixtures("named")
def test_no_device_is_a_note(standin: Standin) -> None:
    standin.arm("hipGetDeviceCount:1:100")  # hipErrorNoDevice
    finding = found()
    assert finding.status is Status.NOTE
    assert "it finds no device" in finding.detail
    assert "/dev/kfd" in finding.remedy


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("call", ["hipRuntimeGetVersion", "hipGetDeviceCount", "hipGetDevicePropertiesR0600"])
def test_a_call_that_fails_is_a_problem(call: str, standin: Standin) -> None:
    standin.arm(f"{call}:1:999")
    finding = found()
    assert finding.status is Status.PROBLEM
    assert f"{call} failed: hipErrorUnknown (999)" in finding.detail

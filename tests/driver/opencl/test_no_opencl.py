"""A machine without OpenCL: nothing is opened, and the errors say what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.driver.opencl import find_library, has_platforms, open_library
from triton_porting_kit.driver.opencl.streams import failure_of
from triton_porting_kit.errors import AssertionFailed, LaunchError, ToolchainError


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TPK_OPENCL_LIBRARY", str(tmp_path / "libOpenCL.so"))
    assert find_library() is None
    assert not has_platforms()
    with pytest.raises(ToolchainError, match=r"TPK_OPENCL_LIBRARY names .*apt-get install"):
        open_library()


def test_a_library_that_is_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "libOpenCL.so"
    path.write_bytes(b"no ELF")
    monkeypatch.setenv("TPK_OPENCL_LIBRARY", str(path))
    with pytest.raises(ToolchainError, match="is not OpenCL's loader"):
        open_library()


def test_a_loader_without_drivers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TPK_OPENCL_LIBRARY", raising=False)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert not has_platforms()


def test_the_status_of_a_failed_assertion() -> None:
    text = b"kernel.py:3, in k: too big\0".ljust(28, b"\0")
    words = [int.from_bytes(text[at : at + 4], "little") for at in range(0, len(text), 4)]
    status = [6, 1, 2, 3, 13, 0, 2, 4, 5]
    status += [0] * (32 - len(status)) + words + [0] * (1024 - 32 - len(words))
    error = failure_of(status, "gpu")
    assert isinstance(error, AssertionFailed)
    assert str(error) == (
        "a device-side assertion failed on gpu in program (1, 2, 3), element (2, 3): kernel.py:3, in k: too big"
    )


def test_the_status_of_another_failure() -> None:
    error = failure_of([4, *[0] * 1023], "gpu")
    assert type(error) is LaunchError
    assert "code 4" in str(error)

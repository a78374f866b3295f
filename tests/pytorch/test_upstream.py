"""The command that runs PyTorch's own tests, on a checkout that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
import upstream
from upstream_known import KNOWN, Known

TEST = """
import torch_openreg  # noqa: F401
import os, unittest


class TestDevice(unittest.TestCase):
    def test_name(self):
        assert "openreg" == "here"

    def test_fails(self):
        raise RuntimeError("what the device openreg lacks")

    @unittest.skip("never")
    def test_skipped(self):
        pass

    def test_dies(self):
        os._exit(1)
"""


def test_each_test_has_its_outcome_even_if_a_process_dies(tmp_path: Path) -> None:
    folder = tmp_path / upstream._OPENREG
    folder.mkdir(parents=True)
    (folder / "test_device.py").write_text(TEST)
    results = {each.name: each for each in upstream.run(tmp_path, upstream.SUITES["openreg"], "here", [])}
    kinds = {name.rpartition("::")[2]: each.kind for name, each in results.items()}
    assert kinds == {
        "test_name": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_dies": "failed",
    }
    assert "the device here lacks" in results["test_device.py::TestDevice::test_fails"].message


def test_failures_are_explained_by_name_and_message() -> None:
    known = Known("test_device.py::*", "it is so", r"lacks|has not")
    assert known.explains("test_device.py::A::test", "what it lacks")
    assert not known.explains("test_device.py::A::test", "what it has")
    assert not known.explains("test_event.py::A::test", "what it lacks")
    assert all(each.reason for each in KNOWN)


def test_a_folder_without_the_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no checkout of PyTorch"):
        list(upstream.run(tmp_path, upstream.SUITES["torch"], "here", []))

"""What `tpk doctor` says of torch: packages that register a torch device, two of them, and ones that fail."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.cli import torch_checks
from triton_porting_kit.cli.findings import Finding, Status

pytest.importorskip("torch")

REGISTERING = """
import torch, types
def register():
    if torch._C._get_privateuse1_backend_name() == "privateuseone":
        torch.utils.rename_privateuse1_backend("{name}")
        torch._register_device_module("{name}", types.SimpleNamespace(is_available=lambda: {available}))
"""
CRASHING = "import os\ndef register(): os.abort()\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs packages that register a torch device; the others of the environment are not listed."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)

    def entry_points(group: str) -> list[Any]:
        points = (p for each in metadata.distributions(path=[str(tmp_path)]) for p in each.entry_points)
        return [point for point in points if point.group == group]

    monkeypatch.setattr(torch_checks.metadata, "entry_points", entry_points)

    def add(name: str, text: str, target: str = "") -> None:
        (tmp_path / f"{name}_module.py").write_text(text)
        info = tmp_path / f"triton_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[torch.backends]\n{name} = {target or f'{name}_module:register'}\n"
        )

    return add


def alpha(available: bool = True) -> str:
    return REGISTERING.format(name="alpha", available=available)


def test_no_package_has_one(install: Any) -> None:
    assert torch_checks.device().status is Status.OK


def test_the_kit_itself_has_none(install: Any) -> None:
    install("kit", "", "triton_porting_kit.pytorch.cpu:register")
    assert "no installed package has one" in torch_checks.device().detail


@pytest.mark.parametrize(("available", "status"), [(True, Status.OK), (False, Status.NOTE)])
def test_one_package_has_it(install: Any, available: bool, status: Status) -> None:
    install("alpha", alpha(available))
    found = torch_checks.device()
    assert found.status is status
    assert "torch.device('alpha'), of triton-alpha" in found.detail


def test_two_packages_want_it(install: Any) -> None:
    install("alpha", alpha())
    install("beta", "def register(): pass\n")
    found = torch_checks.device()
    assert found.status is Status.NOTE
    assert "of triton-alpha" in found.detail
    assert "TRITON_DEFAULT_BACKEND=beta" in found.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [("def register(): raise OSError('no driver')\n", "Failed to load"), (CRASHING, "signal 6")],
    ids=["raises", "crashes"],
)
def test_a_package_breaks_torch(install: Any, text: str, message: str) -> None:
    install("alpha", text)
    found = torch_checks.device()
    assert found.status is Status.PROBLEM
    assert message in found.detail
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in found.remedy


def test_torch_loads_no_package(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install("alpha", alpha())
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    assert "triton-alpha" in torch_checks.device().detail


@pytest.mark.parametrize(("version", "status"), [("2.13.0+cpu", Status.OK), ("2.12.1", Status.NOTE)])
def test_releases(install: Any, monkeypatch: pytest.MonkeyPatch, version: str, status: Status) -> None:
    monkeypatch.setattr(torch_checks.metadata, "version", lambda name: version)
    found: list[Finding] = list(torch_checks.torch())
    assert [finding.name for finding in found] == ["torch", "torch device", "Inductor, CPU"]
    assert found[0].status is status
    assert found[2].status is Status.OK


def test_torch_is_optional(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(torch_checks.metadata, "version", missing)
    [found] = torch_checks.torch()
    assert (found.status, "pip install torch==" in found.remedy) == (Status.NOTE, True)

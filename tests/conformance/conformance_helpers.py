"""What tests of the suite share."""

from __future__ import annotations

from pathlib import Path

from triton.runtime import driver

from triton_porting_kit.conformance.memory import KitMemory


def memory() -> KitMemory:
    """Memory of the active backend's device."""
    return KitMemory(driver.active.device)


def install_broken_backend(folder: Path, damage: str) -> None:
    """Make a folder that, on the path of a process, registers a backend ``broken`` whose compiler is this code."""
    info = folder / "broken-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[triton.backends]\nbroken = broken_backend\n")
    package = folder / "broken_backend"
    package.mkdir()
    for name in ("__init__", "compiler", "driver"):
        (package / f"{name}.py").write_text(damage if name == "compiler" else "")

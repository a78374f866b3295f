"""What the source tree says that an installation should hold."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"][
    "wheel"
]["packages"]
"""Folder in an installation to folder in the source tree."""
EXTENSIONS = (
    "triton_porting_kit/driver/hip/_hip",
    "triton_porting_kit/driver/host/_host",
    "triton_porting_kit/launcher/_packed",
)


SUFFIXES = (".py", ".pyi", ".h", ".toml", ".json", ".txt", ".j2", ".css", ".js")
"""Of sources, and of what they read."""


def source_files() -> set[str]:
    """Every file that belongs into an installation, as its path there, without the extension modules."""
    return {
        (Path(package) / path.relative_to(ROOT / folder)).as_posix()
        for package, folder in PACKAGES.items()
        for path in (ROOT / folder).rglob("*")
        if _is_template(path) or path.suffix in SUFFIXES or path.name == "py.typed"
        if path.is_file() and path.name != "CMakeLists.txt" and "__pycache__" not in path.parts
    }


def _is_template(path: Path) -> bool:
    """Whether a file is of the template for new backends: those that begin with a dot, too."""
    return path.name == "copier.yml" or bool(
        {"template", "releases"} & set(path.relative_to(ROOT).parts[1:2])
    )


def modules() -> list[str]:
    """Every module by its dotted name."""
    template = "triton_porting_kit/backend_template/template/"
    names = [
        name.removesuffix(".py")
        for name in source_files()
        if name.endswith(".py") and not name.startswith(template)
    ]
    return sorted(name.removesuffix("/__init__").replace("/", ".") for name in (*names, *EXTENSIONS))

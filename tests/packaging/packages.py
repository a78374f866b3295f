"""What the source tree says that an installation should hold."""

from __future__ import annotations

from pathlib import Path

from source_tree import SRC, TEMPLATE, files

EXTENSIONS = (
    "triton_porting_kit/driver/hip/_hip",
    "triton_porting_kit/driver/opencl/_opencl",
    "triton_porting_kit/driver/host/_host",
    "triton_porting_kit/launcher/_packed",
    "triton_porting_kit/pytorch/_storage",
)


SUFFIXES = (".py", ".pyi", ".h", ".toml", ".json", ".txt", ".j2", ".css", ".js")
"""Of sources, and of what they read."""


def source_files() -> set[str]:
    """Every file that belongs into an installation, as its path there, without the extension modules."""
    return {
        path.relative_to(SRC).as_posix()
        for path in files()
        if _is_template(path) or path.suffix in SUFFIXES or path.name == "py.typed"
        if path.name != "CMakeLists.txt"
    }


def _is_template(path: Path) -> bool:
    """Whether a file is of the template for new backends: those that begin with a dot, too."""
    return path.name == "copier.yml" or bool({TEMPLATE, TEMPLATE.with_name("releases")} & set(path.parents))


def modules() -> list[str]:
    """Every module by its dotted name."""
    template = "triton_porting_kit/backend_template/template/"
    names = [
        name.removesuffix(".py")
        for name in source_files()
        if name.endswith(".py") and not name.startswith(template)
    ]
    return sorted(name.removesuffix("/__init__").replace("/", ".") for name in (*names, *EXTENSIONS))

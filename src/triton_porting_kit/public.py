"""What of the kit is public: backends use nothing else, and releases keep it. Tests hold the kit's own backends, the
template and docs/contracts.md against this."""

from __future__ import annotations

import importlib

PARTS = ("compiler", "launcher", "driver")
"""Packages of which the names in ``__all__`` are public."""

MODULES = (
    "errors",
    "abi.header",
    "binaries.code_object",
    "compiler.gpu",
    "toolchain.amd_codegen",
    "toolchain.compat",
    "toolchain.mlir",
    "driver.adapter",
    "driver.hip",
    "driver.host",
    "backends.cpu.libdevice",
)
"""Modules of which all names are public that do not begin with an underscore."""


def is_public(module: str, name: str = "") -> bool:
    """Whether what ``from MODULE import NAME`` or, without a name, ``import MODULE`` gives is public.

    `module` is a dotted name that begins with the kit's.
    """
    package, _, inside = module.partition(".")
    if inside in MODULES:
        return not name.startswith("_")
    if name and ".".join(filter(None, (inside, name))) in MODULES:
        return True
    return inside in PARTS and name in importlib.import_module(f"{package}.{inside}").__all__

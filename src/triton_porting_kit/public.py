"""The public names of the kit: backends use no others, and releases keep them. Tests check the kit's own backends, the
template and docs/contracts.md against this list."""

from __future__ import annotations

import importlib

PARTS = ("chips", "compiler", "launcher", "driver", "distributed")
"""Packages whose names in ``__all__`` are public."""

MODULES = (
    "errors",
    "language",
    "abi.header",
    "binaries.code_object",
    "compiler.gpu",
    "toolchain.amd_codegen",
    "toolchain.compat",
    "toolchain.mlir",
    "driver.adapter",
    "driver.hip",
    "driver.host",
    "driver.opencl",
    "pytorch",
    "backends.cpu.libdevice",
    "backends.opencl.compiler",
    "backends.opencl.driver",
)
"""Modules whose names are public unless they begin with an underscore."""


def is_public(module: str, name: str = "") -> bool:
    """Whether ``from MODULE import NAME`` is public or, without a name, ``import MODULE``.

    `module` is a dotted name that begins with the kit's package.
    """
    package, _, inside = module.partition(".")
    if inside in MODULES:
        return not name.startswith("_")
    if name and ".".join(filter(None, (inside, name))) in MODULES:
        return True
    return inside in PARTS and name in importlib.import_module(f"{package}.{inside}").__all__

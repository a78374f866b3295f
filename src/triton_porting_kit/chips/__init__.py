"""Descriptions of chips: what a compiler plans with, and what the virtual NPU simulates. docs/npu.md explains them.

`description` has the types, `load` reads a TOML file or one of the descriptions that come with the kit. `trace` reads
what a simulated chip did, `perfetto` and `page` show it. The package imports nothing but the kit's errors.
"""

from __future__ import annotations

from triton_porting_kit.chips.description import (
    ChipDescription,
    Core,
    Engine,
    Host,
    Link,
    MatrixUnit,
    Memory,
    Product,
    Route,
    Scope,
    VectorUnit,
    Work,
)
from triton_porting_kit.chips.files import CHIPS, load

__all__ = [
    "CHIPS",
    "ChipDescription",
    "Core",
    "Engine",
    "Host",
    "Link",
    "MatrixUnit",
    "Memory",
    "Product",
    "Route",
    "Scope",
    "VectorUnit",
    "Work",
    "load",
]

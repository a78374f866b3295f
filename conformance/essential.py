"""The checks that every chip must pass: without them, the other results of a level are meaningless.

They use 32-bit integers and floats, small tiles and one or a few programs. A profile can neither declare them
unsupported nor waive them.
"""

from __future__ import annotations

ESSENTIAL = (
    "registration/options/launch-num_warps-4",
    "runtime/grids/1",
    "runtime/arguments/i32",
    "language/memory/load_store-i32-tile_64",
    "language/arithmetic/add-fp32-tile_17x4",
    "kernels/vector-add/fp32-1023",
)
"""The names of the essential checks."""

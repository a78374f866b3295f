"""The checks that no chip may lack: without them, nothing else that a level says means anything.

They use 32-bit integers and floats, small tiles and one program or a few. A profile can neither declare them
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
"""Their names."""

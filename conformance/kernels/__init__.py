"""The level `kernels`: real kernels, at small odd sizes and real ones, as their authors write them for any chip.

A module is a family. Its kernels are plain Triton; each `Problem` is one of them on one type and shape, with an oracle
in float64 or exact integers. `FAMILIES` are the modules whose checks make up the level.
"""

FAMILIES: tuple[str, ...] = (
    "elementwise",
    "softmax",
    "normalisation",
    "matmul",
    "batched",
    "attention",
    "losses",
    "rotary",
    "convolution",
    "scans",
    "sorting",
    "persistent",
    "triangular",
    "quantised",
    "movement",
)
"""Modules of this package."""

"""Properties of AMD's architectures: on-chip memory, registers, and matrix instructions.

Sources: AMD's "Instruction Set Architecture" reference guides of CDNA2 (gfx90a), CDNA3 (gfx942), CDNA4 (gfx950), RDNA3
(gfx11) and RDNA4 (gfx120x), chapters on matrix operations; LLVM's "User Guide for AMDGPU Backend" for limits of
registers and LDS, and for gfx1250.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

KIB = 1024

Products = Mapping[str, int]
"""By operand type, as in the names of instructions, the smallest K of the instructions for 16x16 results."""


@dataclass(frozen=True)
class Architecture:
    """The properties of an architecture, or of several similar ones."""

    wavefront: int
    """The number of lanes of a wavefront that Triton compiles for."""
    lds: int
    """The maximum number of bytes of LDS of a work-group."""
    vgprs: int
    """The maximum number of vector registers per lane of a wavefront, including accumulation registers."""
    agprs: int
    """The number of these that are accumulation registers."""
    sgprs: int
    """The number of scalar registers of a wavefront, including VCC and other reserved registers at the end."""
    products: Products
    """The matrix instructions of the architecture."""
    fp8: Mapping[str, str]
    """The supported 8-bit floating-point types by MLIR name, with their names in instructions."""
    scaled: bool = False
    """Whether there are matrix instructions with scaled operands (microscaling formats)."""
    lane_registers: int | None = None
    """The number of vector registers per lane of a SIMD, which its wavefronts share; None: unknown."""
    simds: int = 4
    """The number of SIMDs over which the wavefronts of a work-group are distributed."""


_OCP = {"f8E4M3FN": "fp8", "f8E5M2": "bf8"}
_FNUZ = {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8"}
_CDNA2 = Architecture(
    wavefront=64,
    lds=64 * KIB,
    vgprs=512,
    agprs=256,
    sgprs=108,
    products={"f16": 16, "bf16": 16, "f32": 4, "f64": 4, "i8": 16},
    fp8={},
    lane_registers=512,
)
_CDNA3 = replace(
    _CDNA2,
    products={"f16": 16, "bf16": 16, "f32": 4, "xf32": 8, "f64": 4, "i8": 32, "fp8": 32},
    fp8=_FNUZ,
)
_CDNA4 = replace(
    _CDNA2,
    lds=160 * KIB,
    products={"f16": 16, "bf16": 16, "f32": 4, "f64": 4, "i8": 32, "fp8": 32, "f8f6f4": 128},
    fp8=_OCP,
    scaled=True,
)
_RDNA3 = Architecture(
    wavefront=32,
    lds=64 * KIB,
    vgprs=256,
    agprs=0,
    sgprs=108,
    products={"f16": 16, "bf16": 16, "iu8": 16},
    fp8={},
)
_RDNA4 = replace(_RDNA3, products={"f16": 16, "bf16": 16, "iu8": 16, "fp8": 16}, fp8=_OCP)
_GFX1250 = replace(
    _RDNA3,
    lds=320 * KIB,
    vgprs=1024,
    products={"f16": 32, "bf16": 32, "f32": 4, "iu8": 64, "fp8": 64, "f8f6f4": 128},
    fp8=_OCP,
    scaled=True,
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "gfx90a": _CDNA2,
    "gfx942": _CDNA3,
    "gfx950": _CDNA4,
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1103"), _RDNA3),
    **dict.fromkeys(("gfx1150", "gfx1151", "gfx1152", "gfx1153"), _RDNA3),
    **dict.fromkeys(("gfx1200", "gfx1201"), _RDNA4),
    "gfx1250": _GFX1250,
}
"""The architectures by name. Code objects for other architectures are only checked for consistency."""


def find(arch: object) -> Architecture | None:
    """Find an architecture by name, which may be followed by features (``gfx90a:xnack-``)."""
    return ARCHITECTURES.get(str(arch).partition(":")[0])

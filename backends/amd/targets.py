"""The architectures that the backend compiles for, and their differences."""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat


@dataclass(frozen=True)
class Architecture:
    """A GPU instruction set, by LLVM's name of the processor."""

    name: str
    family: str
    """AMD's name of the generation."""
    warp_size: int
    """Threads of a wave, as Triton uses it."""
    lds_bytes: int
    """Local memory (LDS) available to one workgroup."""
    matrix: str
    """The family of its matrix instructions: ``mfma`` or ``wmma``."""
    most_waves: int
    """The most waves of a SIMD unit: the largest ``waves_per_eu``."""

    @property
    def is_matrix_core(self) -> bool:
        """Whether it belongs to the data-centre line (CDNA)."""
        return self.matrix == "mfma"


_KIB = 1024

ARCHITECTURES = (
    Architecture("gfx90a", "CDNA 2", 64, 64 * _KIB, "mfma", 8),
    Architecture("gfx942", "CDNA 3", 64, 64 * _KIB, "mfma", 8),
    Architecture("gfx950", "CDNA 4", 64, 160 * _KIB, "mfma", 8),
    Architecture("gfx1100", "RDNA 3", 32, 64 * _KIB, "wmma", 16),
    Architecture("gfx1201", "RDNA 4", 32, 64 * _KIB, "wmma", 16),
    Architecture("gfx1250", "gfx1250", 32, 320 * _KIB, "wmma", 16),
)
"""Sizes are those of LLVM's and Triton's target tables."""

MOST_THREADS = 1024
"""The most threads of a workgroup, on every architecture (LLVM AMDGPUUsage, amdgpu-flat-work-group-size)."""


def known_architectures() -> tuple[str, ...]:
    """Names of the architectures that the installed Triton compiles for."""
    return tuple(row.name for row in ARCHITECTURES if compat.amd.has_architecture(row.name))


def architecture(name: object) -> Architecture:
    """The architecture called `name`.

    Raises `OptionError`, which lists those known on this release of Triton, for others.
    """
    for row in ARCHITECTURES:
        if row.name == name and compat.amd.has_architecture(row.name):
            return row
    later = next((row for row in ARCHITECTURES if row.name == name), None)
    numbers, first = (
        ".".join(map(str, r)) for r in (compat.release(), compat.amd.architecture_since(str(name)))
    )
    problem = (
        f"there is no architecture {name!r}"
        if later is None
        else f"Triton {numbers} does not use {later.name}; {first} and later do"
    )
    raise OptionError(problem, remedy=f"give one of {', '.join(known_architectures())}")

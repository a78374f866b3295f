"""AMD's architectures by their ELF flags, and the properties of kernels that depend on them.

Source: LLVM's "User Guide for AMDGPU Backend", sections ELF Code Object and Kernel Descriptor. The list begins with
gfx9: current ROCm does not support older architectures.
"""

from __future__ import annotations

import re
from enum import Enum

from triton_porting_kit.errors import CodeObjectError

#: EM_AMDGPU, and the operating system ABI of code objects for ROCm, ELFOSABI_AMDGPU_HSA.
MACHINE, HSA = 224, 64

#: The lowest byte of an ELF file's flags, EF_AMDGPU_MACH.
_ARCHITECTURES = {
    0x2C: "gfx900",
    0x2D: "gfx902",
    0x2E: "gfx904",
    0x2F: "gfx906",
    0x30: "gfx908",
    0x31: "gfx909",
    0x32: "gfx90c",
    0x33: "gfx1010",
    0x34: "gfx1011",
    0x35: "gfx1012",
    0x36: "gfx1030",
    0x37: "gfx1031",
    0x38: "gfx1032",
    0x39: "gfx1033",
    0x3D: "gfx1035",
    0x3E: "gfx1034",
    0x3F: "gfx90a",
    0x40: "gfx940",
    0x41: "gfx1100",
    0x42: "gfx1013",
    0x43: "gfx1150",
    0x44: "gfx1103",
    0x45: "gfx1036",
    0x46: "gfx1101",
    0x47: "gfx1102",
    0x48: "gfx1200",
    0x49: "gfx1250",
    0x4A: "gfx1151",
    0x4B: "gfx941",
    0x4C: "gfx942",
    0x4E: "gfx1201",
    0x4F: "gfx950",
    0x51: "gfx9-generic",
    0x52: "gfx10-1-generic",
    0x53: "gfx10-3-generic",
    0x54: "gfx11-generic",
    0x55: "gfx1152",
    0x58: "gfx1153",
    0x59: "gfx12-generic",
    0x5A: "gfx1251",
    0x5B: "gfx12-5-generic",
    0x5F: "gfx9-4-generic",
}

ARCHITECTURES = tuple(_ARCHITECTURES.values())

#: The meaning of the two flag bits of a feature, since code object version 4: unsupported, any, off, on.
_FEATURE_SUFFIXES = ("", "", "-", "+")


class Generation(Enum):
    """Architectures whose kernel descriptors have the same fields."""

    GFX9 = "gfx9"
    GFX90A = "gfx90a"
    """With accumulation registers in the vector register file: gfx90a, gfx94x, gfx950."""
    GFX10 = "gfx10"
    GFX11 = "gfx11"
    GFX12 = "gfx12"
    GFX125 = "gfx125"


def architecture_of(flags: int) -> str:
    """The architecture in an ELF file's flags. Raises `CodeObjectError` for unlisted ones."""
    try:
        return _ARCHITECTURES[flags & 0xFF]
    except KeyError:
        raise CodeObjectError(
            f"made for AMD architecture {flags & 0xFF:#x} of ELF, which is none of gfx9 to gfx12: damaged, or newer "
            f"than this release of the kit"
        ) from None


def target_id_of(flags: int, abi_version: int) -> str:
    """The architecture with the features that the code requires, such as ``gfx90a:sramecc+:xnack-``.

    `abi_version` is the ELF file's; version 1, that of code objects 3, has other flags.
    """
    target = architecture_of(flags)
    if abi_version == 1:
        features = {"sramecc": 3 * (flags >> 9 & 1), "xnack": 3 * (flags >> 8 & 1)}
    else:
        features = {"sramecc": flags >> 10 & 3, "xnack": flags >> 8 & 3}
    for name, setting in features.items():
        if suffix := _FEATURE_SUFFIXES[setting]:
            target += f":{name}{suffix}"
    return target


def generation_of(arch: str) -> Generation:
    """The generation of kernel descriptors that an architecture uses."""
    if re.match(r"gfx9(0a|4|5|-4)", arch):
        return Generation.GFX90A
    if re.match(r"gfx12(5|-5)", arch):
        return Generation.GFX125
    for generation in (Generation.GFX10, Generation.GFX11, Generation.GFX12):
        if arch.startswith(generation.value):
            return generation
    return Generation.GFX9

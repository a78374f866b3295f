"""What the loop lowering and code generation know of a CPU."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuTarget:
    """A CPU to generate code for.

    `features` are what it has, under LLVM's names, `absent` what it lacks although the CPU called `cpu` may have
    it: the name decides scheduling, the features which instructions are used.
    """

    triple: str
    cpu: str
    features: frozenset[str]
    absent: frozenset[str] = frozenset()

    @property
    def vector_bytes(self) -> int:
        """Bytes of the registers that loops are written for."""
        if "avx512f" in self.features:
            return 64
        if "avx" in self.features:
            return 32
        return 16

    @property
    def vector_registers(self) -> int:
        """Registers of that width there are."""
        if "avx512f" in self.features or not self.triple.startswith("x86_64"):
            return 32
        return 16

    @property
    def lanes(self) -> int:
        """32-bit lanes of one register: the chunk that loops step by."""
        return self.vector_bytes // 4

    @property
    def has_scalef(self) -> bool:
        """``llvm.ldexp`` on vectors is one instruction."""
        return "avx512f" in self.features

    @property
    def multiplies_bf16_pairs(self) -> bool:
        """AVX512-BF16: products of pairs of bf16, added to f32 in 512-bit registers."""
        return "avx512bf16" in self.features

    @property
    def feature_string(self) -> str:
        """For LLVM: ``+a,-b,...`` in a stable order."""
        marked = [(name, "+") for name in self.features] + [(name, "-") for name in self.absent]
        return ",".join(f"{mark}{name}" for name, mark in sorted(marked))

    @staticmethod
    def host() -> CpuTarget:
        """The CPU that this process runs on, without the features that ``TPK_CPU_WITHOUT`` names.

        That variable holds beginnings of LLVM feature names, as in ``avx512,amx``.
        """
        from triton_porting_kit.toolchain import llvm  # not before a kernel is compiled

        without = tuple(filter(None, os.environ.get("TPK_CPU_WITHOUT", "").split(",")))
        known = llvm.host_features()
        features = frozenset(name for name, there in known.items() if there and not name.startswith(without))
        triple = llvm.host_triple()
        return CpuTarget(
            triple, _cpu_name(triple, llvm.host_cpu(), features), features, frozenset(known) - features
        )

    @staticmethod
    def of(triple: str, cpu: str, feature_string: str) -> CpuTarget:
        """A target from LLVM's strings."""
        names = [name.strip() for name in feature_string.split(",")]
        present, absent = (frozenset(name[1:] for name in names if name.startswith(mark)) for mark in "+-")
        return CpuTarget(triple, cpu, present, absent)


_CPU_OF_FEATURES = (
    ("amx-tile", "sapphirerapids"),
    ("avx512bf16", "znver4"),
    ("avx512f", "cascadelake"),
    ("avx2", "haswell"),
)
"""CPUs to schedule for, by the newest feature that is there."""

_MODERN = ("znver4", "znver5", "sapphirerapids", "emeraldrapids", "graniterapids")


def _cpu_name(triple: str, guess: str, features: frozenset[str]) -> str:
    """LLVM's guess where it is of a recent CPU with 512-bit registers or not of x86, else by the features."""
    if not triple.startswith("x86_64") or (guess in _MODERN and "avx512f" in features):
        return guess
    return next((name for feature, name in _CPU_OF_FEATURES if feature in features), "x86-64")

"""The instruction-set levels that kernels are tried on, and how a level becomes a target or an environment.

A compiler that is right for one level may be wrong for the next: what LLVM makes of a mask or a conversion is other
code on each. The levels of x86-64 are the steps at which the registers or the masks of vectors change.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from triton_porting_kit.compiler import cpus
from triton_porting_kit.compiler.target import CpuTarget

_SSE2 = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"})
_AVX = _SSE2 | {"avx", "crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"}
_AVX2 = _AVX | {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_AVX512 = _AVX2 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
_NEON = frozenset({"fp-armv8", "neon"})


@dataclass(frozen=True)
class IsaLevel:
    """What code of this level may use, and no more; `docs/conformance.md` says what is tried on each."""

    name: str
    arch: str
    """As `platform.machine` has it."""
    cpu: str
    """A CPU of this level, for hosts that cannot run it."""
    features: frozenset[str]
    """Under LLVM's names."""

    def missing(self) -> frozenset[str]:
        """What this host lacks to run code of this level: features, or the architecture. Empty: it runs here."""
        if platform.machine() != self.arch:
            return frozenset({self.arch})
        deciding = self.features & (cpus.VECTOR_FEATURES | _NEON)  # hypervisors hide others that are there
        return deciding - CpuTarget.host().features

    def without(self) -> str:
        """For ``TPK_CPU_WITHOUT``: every feature of this host that is beyond the level."""
        from triton_porting_kit.toolchain import llvm

        return ",".join(
            sorted(
                name for name, there in llvm.host_features().items() if there and name not in self.features
            )
        )

    def environment(self) -> dict[str, str]:
        """What makes a new process compile for this level, on a host that runs it."""
        return {"TPK_CPU_WITHOUT": self.without()}

    def target(self) -> CpuTarget:
        """What kernels are compiled for in that environment; where the host does not run it, a CPU of the level."""
        return CpuTarget.named(self.cpu) if self.missing() else CpuTarget.host(self.without())

    def options(self) -> dict[str, str]:
        """Options of the CPU backend that compile a single kernel for this level."""
        target = self.target()
        return {"cpu_triple": target.triple, "cpu_name": target.cpu, "cpu_features": target.feature_string}


ISA_LEVELS = {
    level.name: level
    for level in (
        IsaLevel("sse2", "x86_64", "x86-64", _SSE2),
        IsaLevel("avx", "x86_64", "sandybridge", _AVX),
        IsaLevel("avx2", "x86_64", "haswell", _AVX2),
        IsaLevel("avx512", "x86_64", "skylake-avx512", _AVX512),
        IsaLevel("neon", "aarch64", "cortex-a72", _NEON),
    )
}
"""Every level by its name, for each architecture from the least to the most."""

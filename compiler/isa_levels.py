"""The instruction-set levels that kernels are tested on, and how to compile for a level.

A compiler that is right for one level may be wrong for another: LLVM generates different code for a mask or a
conversion. The levels of x86-64 are the steps at which vector registers or masks change.
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
    """An instruction-set level: the features that its code may use.

    `docs/conformance.md` says what is tested on each.
    """

    name: str
    arch: str
    """The architecture, as in `platform.machine`."""
    cpu: str
    """A CPU of this level, for hosts that cannot run it."""
    features: frozenset[str]
    """The features, by LLVM's names."""

    def missing(self) -> frozenset[str]:
        """What this host lacks to run code of this level: features, or the architecture. Empty if it runs here."""
        if platform.machine() != self.arch:
            return frozenset({self.arch})
        deciding = self.features & (
            cpus.VECTOR_FEATURES | _NEON
        )  # hypervisors hide other features that are present
        return deciding - CpuTarget.host().features

    def without(self) -> str:
        """The value of ``TPK_CPU_WITHOUT``: every feature of this host beyond the level."""
        from triton_porting_kit.toolchain import llvm

        return ",".join(
            sorted(
                name for name, there in llvm.host_features().items() if there and name not in self.features
            )
        )

    def environment(self) -> dict[str, str]:
        """The environment in which a new process compiles for this level, on a host that supports it."""
        return {"TPK_CPU_WITHOUT": self.without()}

    def target(self) -> CpuTarget:
        """The target for this level: the host without the features beyond it, or a CPU of the level if the host lacks
        some.
        """
        return CpuTarget.named(self.cpu) if self.missing() else CpuTarget.host(self.without())

    def options(self) -> dict[str, str]:
        """Options of the CPU backend that compile a single kernel for this level."""
        return self.target().options()


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
"""Every level by name, for each architecture in increasing order."""

"""What the loop lowering and code generation know of a CPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CpuTarget:
    """A CPU to generate code for.

    `features` are LLVM's names. `vector_bytes` is the width of the registers that loops are written for,
    `vector_registers` how many of them register blocks may use.
    """

    triple: str
    cpu: str
    features: frozenset[str]

    @property
    def vector_bytes(self) -> int:
        if "avx512f" in self.features:
            return 64
        if "avx" in self.features:
            return 32
        return 16

    @property
    def vector_registers(self) -> int:
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
        """For LLVM: ``+a,+b,...`` in a stable order."""
        return ",".join(f"+{name}" for name in sorted(self.features))

    @staticmethod
    def host() -> CpuTarget:
        """The CPU that this process runs on."""
        from triton_porting_kit.toolchain import llvm  # not before a kernel is compiled

        return CpuTarget(llvm.host_triple(), llvm.host_cpu(), llvm.host_features())

    @staticmethod
    def of(triple: str, cpu: str, feature_string: str) -> CpuTarget:
        """A target from LLVM's strings; of the feature string only what is switched on (``+name``) counts."""
        names = (name.strip() for name in feature_string.split(","))
        return CpuTarget(triple, cpu, frozenset(name[1:] for name in names if name.startswith("+")))

"""What the loop lowering and code generation know of a CPU."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace

from triton_porting_kit.compiler import cpus, permissions

_PORTABLE = "portable-unknown-unknown"


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
    register_bytes: int = 0
    """Bytes of the registers that loops are written for; 0: as the features say."""

    @property
    def vector_bytes(self) -> int:
        """Bytes of the registers that loops are written for."""
        if self.register_bytes:
            return self.register_bytes
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
        """There is an instruction that scales vectors by powers of two: AVX-512's VSCALEFPS."""
        return "avx512f" in self.features

    @property
    def multiplies_high(self) -> bool:
        """``llvm.umul.fix`` on vectors of i32 is the instructions for the upper halves of products."""
        return self.triple.startswith("x86_64")

    @property
    def masks_gathers(self) -> bool:
        """Lanes that are not wanted are left out of a gather by the instruction itself, under a mask register."""
        return "avx512f" in self.features

    @property
    def masks_by_sign(self) -> bool:
        """Masked loads are VMASKMOV, which tests the signs of a vector: `lane_masks` is about what LLVM makes of it."""
        return "avx" in self.features and "avx512f" not in self.features

    @property
    def shuffles(self) -> bool:
        """There are instructions that take any lanes of two vectors."""
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def prefetches(self) -> bool:
        """There is an instruction that asks for a line of memory before it is needed."""
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def converts_f16(self) -> bool:
        """There are instructions between half and single precision."""
        return "f16c" in self.features or not self.triple.startswith(("x86_64", _PORTABLE))

    @property
    def multiplies_bf16_pairs(self) -> bool:
        """AVX512-BF16: products of pairs of bf16, added to f32 in 512-bit registers."""
        return "avx512bf16" in self.features

    @property
    def multiplies_byte_quads(self) -> bool:
        """AVX512-VNNI: products of four bytes, added to i32 in 512-bit registers."""
        return "avx512vnni" in self.features

    @property
    def multiplies_bf16_tiles(self) -> bool:
        """AMX: products of 16 x 32 by 32 x 16 bf16, added to f32 in matrix registers."""
        return {"amx-tile", "amx-bf16"} <= self.features

    @property
    def multiplies_byte_tiles(self) -> bool:
        """AMX: products of 16 x 64 by 64 x 16 bytes, added to i32 in matrix registers."""
        return {"amx-tile", "amx-int8"} <= self.features

    @functools.cached_property
    def feature_string(self) -> str:
        """For LLVM: ``+a,-b,...`` in a stable order."""
        marked = [(name, "+") for name in self.features] + [(name, "-") for name in self.absent]
        return ",".join(f"{mark}{name}" for name, mark in sorted(marked))

    def with_features(self, changes: str) -> CpuTarget:
        """With features added or taken away, as ``+avx2,-avx512f``. Taking one takes what builds on it."""
        features = set(self.features)
        for change in filter(None, (change.strip() for change in changes.split(","))):
            sign, name = change[0], change[1:]
            if sign == "+":
                features.add(name)
            elif sign == "-":
                gone = cpus.DEPENDENTS.get(name, ())
                features = {
                    feature for feature in features if feature != name and not feature.startswith(gone)
                }
            else:
                raise ValueError(f"the feature {change!r} starts with neither + nor -")
        absent = (self.absent | self.features) - features
        return replace(self, features=frozenset(features), absent=absent)

    @staticmethod
    def host(without: str | None = None) -> CpuTarget:
        """The CPU that this process runs on, without the features that `without` or ``TPK_CPU_WITHOUT`` names.

        Either holds beginnings of LLVM feature names, as in ``avx512,amx``. AMX counts as absent where the
        operating system does not let this process use it (see `permissions`).
        """
        return _host(os.environ.get("TPK_CPU_WITHOUT", "") if without is None else without)

    @staticmethod
    def named(cpu: str) -> CpuTarget:
        """A CPU under LLVM's name. Raises ValueError that lists the names known."""
        for arch, names in cpus.NAMED.items():
            if cpu in names:
                absent = cpus.VECTOR_FEATURES - names[cpu] if arch == "x86_64" else frozenset[str]()
                return CpuTarget(f"{arch}-unknown-linux-gnu", cpu, names[cpu], absent)
        known = ", ".join(name for names in cpus.NAMED.values() for name in names)
        raise ValueError(f"the CPU {cpu!r} is not known; there are {known}")

    @staticmethod
    def portable(vector_bytes: int = 16) -> CpuTarget:
        """No CPU in particular, for loops that another compiler takes on: see `cpp_pipeline`.

        They use no instruction that has to have a name, and vectors of `vector_bytes` (16, 32 or 64).
        Raises ValueError for another size.
        """
        if vector_bytes not in (16, 32, 64):
            raise ValueError(f"vectors of {vector_bytes} bytes: loops are written for 16, 32 or 64")
        return CpuTarget(_PORTABLE, "generic", frozenset(), register_bytes=vector_bytes)

    @staticmethod
    @functools.lru_cache(maxsize=16)
    def of(triple: str, cpu: str, feature_string: str) -> CpuTarget:
        """A target from LLVM's strings."""
        names = [name.strip() for name in feature_string.split(",")]
        present, absent = (frozenset(name[1:] for name in names if name.startswith(mark)) for mark in "+-")
        return CpuTarget(triple, cpu, present, absent)


@functools.cache  # a process's CPU stays the same, and each launch of a new kernel asks for it several times
def _host(without: str) -> CpuTarget:
    from triton_porting_kit.toolchain import llvm  # not before a kernel is compiled

    gone = tuple(filter(None, without.split(",")))
    known = llvm.host_features()
    features = frozenset(name for name, there in known.items() if there and not name.startswith(gone))
    if "amx-tile" in features and not permissions.matrix_registers():
        features = frozenset(name for name in features if not name.startswith("amx-"))
    triple = llvm.host_triple()
    cpu = cpus.scheduling_cpu(triple, llvm.host_cpu(), features)
    return CpuTarget(triple, cpu, features, frozenset(known) - features)

"""The properties of a CPU that the loop lowering and code generation use."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.compiler import cpus, permissions
from triton_porting_kit.compiler.caches import Caches
from triton_porting_kit.errors import OptionError

_PORTABLE = "portable-unknown-unknown"


@dataclass(frozen=True)
class CpuTarget:
    """A CPU to generate code for.

    `features` are those it has, by LLVM's names; `absent` are those it lacks although the CPU model `cpu` may have
    them. The model decides scheduling, the features decide which instructions are used.
    """

    triple: str
    cpu: str
    features: frozenset[str]
    absent: frozenset[str] = frozenset()
    register_bytes: int = 0
    """Bytes of the registers that loops are written for; 0: derived from the features."""
    caches: Caches = cpus.GENERIC_CACHES
    """How much of a product's operands is read again before it is replaced follows from these."""

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
        """The number of registers of that width."""
        if "avx512f" in self.features or not self.triple.startswith("x86_64"):
            return 32
        return 16

    @property
    def lanes(self) -> int:
        """32-bit lanes of one register: the step of loops along the lanes."""
        return self.vector_bytes // 4

    def strip_bytes(self, element: str = "f32") -> int:
        """Most bytes of the second operand of a product that one strip of columns reads: see `Caches`."""
        wide = "avx512f" in self.features
        return self.caches.wide_strip_bytes(element) if wide else self.caches.strip_bytes

    @property
    def has_scalef(self) -> bool:
        """Whether instructions scale vectors by powers of two and take off integers: AVX-512's VSCALEFPS, VREDUCEPS."""
        return "avx512f" in self.features

    @property
    def has_range(self) -> bool:
        """Whether an instruction takes the larger number where one of two floats may be NaN: AVX-512's VRANGEPS."""
        return "avx512f" in self.features

    @property
    def keeps_second(self) -> bool:
        """Whether the larger of two floats is the second one if one of them is NaN, and takes one instruction: MAXPS.

        With AVX-512, MAXPS and a masked move take hardly longer than it does alone.
        """
        return self.triple.startswith("x86_64") and "avx512f" not in self.features

    @property
    def multiplies_high(self) -> bool:
        """Whether LLVM lowers ``llvm.umul.fix`` on vectors of i32 to the instructions for upper halves of products."""
        return self.triple.startswith("x86_64")

    @property
    def divides_signed(self) -> bool:
        """Whether lanes of signed i32 are converted to doubles and back by one instruction each."""
        return self.triple.startswith("x86_64")

    @property
    def divides_unsigned(self) -> bool:
        """The same of unsigned lanes."""
        return "avx512f" in self.features

    @property
    def divides_slowly(self) -> bool:
        """Whether a division of a whole vector of f32 takes longer than the product of doubles: of 512 bits."""
        return "avx512f" in self.features

    @property
    def masks_gathers(self) -> bool:
        """Whether gathers take a mask register, so that masked-off lanes cost nothing."""
        return "avx512f" in self.features

    @property
    def masks_by_sign(self) -> bool:
        """Whether masked loads are VMASKMOV, which tests the signs of a vector.

        See `lane_masks` for LLVM's bug with them.
        """
        return "avx" in self.features and "avx512f" not in self.features

    @property
    def shuffles(self) -> bool:
        """Whether there are instructions that select any lanes of two vectors."""
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def prefetches(self) -> bool:
        """Whether there is a prefetch instruction."""
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def prefetches_streams(self) -> bool:
        """Whether software prefetches of streams pay, beside those of the hardware.

        On Zen 4, kernels that map elements take 1 to 17 % less time without. Other Zen cores were not measured.
        """
        return self.prefetches and not self.cpu.startswith("znver")

    @property
    def has_flat_memory(self) -> bool:
        """Whether scratch and all arrays have addresses of 64 bits in one space."""
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def converts_f16(self) -> bool:
        """Whether there are conversion instructions between half and single precision."""
        return "f16c" in self.features or not self.triple.startswith(("x86_64", _PORTABLE))

    @property
    def keeps_payloads(self) -> bool:
        """Whether arithmetic gives NaN the payload of an operand, made quiet, or that of the default NaN, which is 0.

        SSE and AVX, and AArch64 without FPCR.DN (Arm Architecture Reference Manual, `FPProcessNaN`).
        """
        return self.triple.startswith(("x86_64", "aarch64"))

    @property
    def lookup_lanes(self) -> int:
        """Lanes of the instruction that selects any of a register's f32 for each lane: VPERMPS. 0: there is none."""
        if "avx512f" in self.features:
            return 16
        return 8 if "avx2" in self.features else 0

    @property
    def lookup_bytes(self) -> int:
        """Bytes in the two registers from which an instruction selects any for each of 64: VPERMI2B. 0: none."""
        return 128 if "avx512vbmi" in self.features else 0

    @property
    def rounds_to_bf16(self) -> bool:
        """AVX512-BF16: f32 rounded to bf16, with denormals as zero."""
        return "avx512bf16" in self.features

    @property
    def multiplies_bf16_pairs(self) -> bool:
        """AVX512-BF16: products of pairs of bf16, added to f32 in 512-bit registers, where that is fast.

        A core of Zen 4 or 5 does as many of them as multiply-adds of f32. One of Granite Rapids does a quarter as many,
        one in two cycles, so that a product of f32 takes 0.6 of the time.
        """
        return self.rounds_to_bf16 and self.cpu.startswith("znver")

    @property
    def multiplies_byte_quads(self) -> bool:
        """AVX512-VNNI: products of four bytes, added to i32 in 512-bit registers."""
        return "avx512vnni" in self.features

    @property
    def multiplies_word_pairs(self) -> bool:
        """PMADDWD in whole registers: sums of two products of i16. AVX without AVX2 has it for halves only."""
        return self.triple.startswith("x86_64") and ("avx2" in self.features or "avx" not in self.features)

    @property
    def multiplies_bf16_tiles(self) -> bool:
        """AMX: products of 16 x 32 by 32 x 16 bf16, added to f32 in tile registers."""
        return {"amx-tile", "amx-bf16"} <= self.features

    @property
    def multiplies_byte_tiles(self) -> bool:
        """AMX: products of 16 x 64 by 64 x 16 bytes, added to i32 in tile registers."""
        return {"amx-tile", "amx-int8"} <= self.features

    @functools.cached_property
    def feature_string(self) -> str:
        """For LLVM: ``+a,-b,...`` in a stable order."""
        marked = [(name, "+") for name in self.features] + [(name, "-") for name in self.absent]
        return ",".join(f"{mark}{name}" for name, mark in sorted(marked))

    def with_features(self, changes: str) -> CpuTarget:
        """The target with features added or removed, such as ``+avx2,-avx512f``.

        Removing one removes those that depend on it. Raises OptionError for one that x86-64 requires.
        """
        features = self.features
        for change in filter(None, (change.strip() for change in changes.split(","))):
            sign, name = change[0], change[1:]
            if sign == "+":
                features |= {name}
            elif sign == "-":
                features = _usable(self.triple, features - {name}, {name})
            else:
                raise ValueError(f"the feature {change!r} starts with neither + nor -")
        absent = (self.absent | self.features) - features
        return replace(self, features=features, absent=absent)

    @staticmethod
    def host(without: str | None = None) -> CpuTarget:
        """The CPU that this process runs on, without the features that `without` or ``TPK_CPU_WITHOUT`` names.

        Both hold prefixes of LLVM feature names, such as ``avx512,amx``. Features that depend on these are removed,
        too. AMX counts as absent if the operating system does not let this process use it (see `permissions`). The
        caches are those that ``TPK_CPU_CACHES`` gives (see `Caches.parse`), that the system reports, or those of the
        CPU's name.
        """
        without = os.environ.get("TPK_CPU_WITHOUT", "") if without is None else without
        return _host(without, os.environ.get("TPK_CPU_CACHES", ""))

    @staticmethod
    def named(cpu: str) -> CpuTarget:
        """A CPU by LLVM's name. Raises ValueError, which lists the known names, for others."""
        for arch, names in cpus.NAMED.items():
            if cpu in names:
                absent = cpus.VECTOR_FEATURES - names[cpu] if arch == "x86_64" else frozenset[str]()
                caches = cpus.CACHES.get(cpu, cpus.GENERIC_CACHES)
                return CpuTarget(f"{arch}-unknown-linux-gnu", cpu, names[cpu], absent, caches=caches)
        known = ", ".join(name for names in cpus.NAMED.values() for name in names)
        raise ValueError(f"the CPU {cpu!r} is not known; there are {known}")

    def options(self) -> dict[str, str]:
        """The target as options of the CPU backend, which are part of the key of Triton's cache."""
        return {
            "cpu_triple": self.triple,
            "cpu_name": self.cpu,
            "cpu_features": self.feature_string,
            "cpu_caches": str(self.caches),
        }

    @staticmethod
    def from_options(options: Mapping[str, Any]) -> CpuTarget:
        """The target of a kernel's options, or of its metadata. Raises OptionError for caches that cannot be read."""
        return CpuTarget.of(
            options["cpu_triple"],
            options["cpu_name"],
            options["cpu_features"],
            options.get("cpu_caches", ""),
        )

    @staticmethod
    def portable(vector_bytes: int = 16) -> CpuTarget:
        """No CPU in particular, for loops that another compiler compiles further: see `cpp_pipeline`.

        The loops use no target-specific instruction, and vectors of `vector_bytes` (16, 32 or 64). Raises ValueError
        for another size.
        """
        if vector_bytes not in (16, 32, 64):
            raise ValueError(f"vectors of {vector_bytes} bytes: loops are written for 16, 32 or 64")
        return CpuTarget(_PORTABLE, "generic", frozenset(), register_bytes=vector_bytes)

    @staticmethod
    @functools.lru_cache(maxsize=16)
    def of(triple: str, cpu: str, feature_string: str, caches: str = "") -> CpuTarget:
        """A target from LLVM's strings, and from the text of its caches; without it, they are those of the named CPU.

        Raises OptionError if `caches` is not of the form that `Caches.parse` reads, or if x86-64 requires an absent
        feature.
        """
        names = [name.strip() for name in feature_string.split(",")]
        present, absent = (frozenset(name[1:] for name in names if name.startswith(mark)) for mark in "+-")
        present = _usable(triple, present, absent)
        known = Caches.parse(caches) if caches else cpus.CACHES.get(cpu, cpus.GENERIC_CACHES)
        return CpuTarget(triple, cpu, present, absent, caches=known)


def _usable(triple: str, features: Set[str], absent: Set[str]) -> frozenset[str]:
    """`features` without those that depend on one of `absent`."""
    required = cpus.REQUIRED & absent if triple.startswith("x86_64") else ()
    if required:
        raise OptionError(
            f"there is no code for {triple} without {', '.join(sorted(required))}",
            remedy="do not take these features away, by TPK_CPU_WITHOUT or the option cpu_features",
        )
    return cpus.without_dependents(features, absent)


@functools.cache  # the CPU does not change, and each launch of a new kernel asks for it several times
def _host(without: str, caches: str) -> CpuTarget:
    from triton_porting_kit.toolchain import llvm  # not imported before a kernel is compiled

    gone = tuple(filter(None, without.split(",")))
    known = llvm.host_features()
    features = frozenset(name for name, there in known.items() if there and not name.startswith(gone))
    if "amx-tile" in features and not permissions.matrix_registers():
        features = frozenset(name for name in features if not name.startswith("amx-"))
    triple = llvm.host_triple()
    features = _usable(triple, features, known.keys() - features)
    cpu = cpus.scheduling_cpu(triple, llvm.host_cpu(), features)
    found = Caches.parse(caches) if caches else Caches.detect() or cpus.CACHES.get(cpu, cpus.GENERIC_CACHES)
    return CpuTarget(triple, cpu, features, frozenset(known) - features, caches=found)

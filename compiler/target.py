"""What the loop lowering and code generation know of a CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

_AVX2 = frozenset({"avx", "avx2", "f16c", "fma"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_AVX512_2019 = _AVX512 | {
    "avx512bitalg",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vnni",
    "avx512vpopcntdq",
}
_AMX = frozenset({"amx-tile", "amx-bf16", "amx-int8"})

_NAMED = {
    "x86_64": {
        "x86-64": frozenset[str](),
        "x86-64-v2": frozenset[str](),
        **dict.fromkeys(("haswell", "broadwell", "skylake", "znver2", "znver3", "x86-64-v3"), _AVX2),
        **dict.fromkeys(("skylake-avx512", "x86-64-v4"), _AVX512),
        "cascadelake": _AVX512 | {"avx512vnni"},
        "icelake-server": _AVX512_2019,
        "znver4": _AVX512_2019 | {"avx512bf16"},
        "znver5": _AVX512_2019 | {"avx512bf16", "avxvnni"},
        "sapphirerapids": _AVX512_2019 | _AMX | {"avx512bf16", "avx512fp16", "avxvnni"},
        "graniterapids": _AVX512_2019 | _AMX | {"avx512bf16", "avx512fp16", "avxvnni", "amx-fp16"},
    },
    "aarch64": dict.fromkeys(
        ("cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2", "ampere1"),
        frozenset({"neon"}),
    ),
}
"""Features that matter to loops and register blocks, by LLVM's name of the CPU; LLVM knows the others."""

VECTOR_FEATURES = frozenset().union(*_NAMED["x86_64"].values())

# Beginnings of the names of what goes with a feature that is taken away.
_DEPENDENTS = {
    "avx": ("avx", "f16c", "fma"),
    "avx2": ("avx512", "avxvnni"),
    "avx512f": ("avx512",),
    "amx-tile": ("amx-",),
}


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
    def feature_string(self) -> str:
        """For LLVM: ``+a,+b,...,-c`` in a stable order.

        Vector features that are not there are switched off, because LLVM infers features from the CPU's name,
        and a virtual machine may hide some of those.
        """
        absent = VECTOR_FEATURES - self.features if self.triple.startswith("x86_64") else frozenset()
        return ",".join(
            [f"+{name}" for name in sorted(self.features)] + [f"-{name}" for name in sorted(absent)]
        )

    def with_features(self, changes: str) -> CpuTarget:
        """With features added or taken away, as ``+avx2,-avx512f``. Taking one takes what builds on it."""
        features = set(self.features)
        for change in filter(None, (change.strip() for change in changes.split(","))):
            sign, name = change[0], change[1:]
            if sign == "+":
                features.add(name)
            elif sign == "-":
                gone = _DEPENDENTS.get(name, ())
                features = {
                    feature for feature in features if feature != name and not feature.startswith(gone)
                }
            else:
                raise ValueError(f"the feature {change!r} starts with neither + nor -")
        return replace(self, features=frozenset(features))

    @staticmethod
    def host() -> CpuTarget:
        """The CPU that this process runs on."""
        from triton_porting_kit.toolchain import llvm  # not before a kernel is compiled

        return CpuTarget(llvm.host_triple(), llvm.host_cpu(), llvm.host_features())

    @staticmethod
    def named(cpu: str) -> CpuTarget:
        """A CPU under LLVM's name. Raises ValueError that lists the names known."""
        for arch, names in _NAMED.items():
            if cpu in names:
                return CpuTarget(f"{arch}-unknown-linux-gnu", cpu, names[cpu])
        known = ", ".join(name for names in _NAMED.values() for name in names)
        raise ValueError(f"the CPU {cpu!r} is not known; there are {known}")

    @staticmethod
    def of(triple: str, cpu: str, feature_string: str) -> CpuTarget:
        """A target from LLVM's strings; of the feature string only what is switched on (``+name``) counts."""
        names = (name.strip() for name in feature_string.split(","))
        return CpuTarget(triple, cpu, frozenset(name[1:] for name in names if name.startswith("+")))

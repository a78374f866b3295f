"""CPUs that code can be generated for by name, and the features of theirs that loops and register blocks depend on.

The names are LLVM's, which knows all other features of a CPU by its name.
"""

from __future__ import annotations

_AVX2 = frozenset({"avx", "avx2", "f16c", "fma"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_ICE_LAKE = _AVX512 | {f"avx512{name}" for name in ("bitalg", "ifma", "vbmi", "vbmi2", "vnni", "vpopcntdq")}
_SAPPHIRE_RAPIDS = _ICE_LAKE | {"avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-bf16", "amx-int8"}

NAMED_CPUS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {
        **dict.fromkeys(("x86-64", "x86-64-v2"), frozenset()),
        **dict.fromkeys(("haswell", "broadwell", "skylake", "znver2", "znver3", "x86-64-v3"), _AVX2),
        **dict.fromkeys(("skylake-avx512", "x86-64-v4"), _AVX512),
        "cascadelake": _AVX512 | {"avx512vnni"},
        "icelake-server": _ICE_LAKE,
        "znver4": _ICE_LAKE | {"avx512bf16"},
        "znver5": _ICE_LAKE | {"avx512bf16", "avxvnni"},
        "sapphirerapids": _SAPPHIRE_RAPIDS,
        "graniterapids": _SAPPHIRE_RAPIDS | {"amx-fp16"},
    },
    "aarch64": dict.fromkeys(
        ("cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2"),
        frozenset({"neon"}),
    ),
}
"""Vector features by architecture and name."""

_DEPENDENTS = {
    "avx": ("avx", "f16c", "fma"),
    "avx2": ("avx512", "avxvnni"),
    "avx512f": ("avx512",),
    "amx-tile": ("amx-",),
}
"""Beginnings of the names of the features that need another."""


def changed(features: frozenset[str], changes: str) -> tuple[frozenset[str], frozenset[str]]:
    """`features` after changes like ``+avx2,-avx512f``, and what was taken away: a feature with all that need it.

    Raises ValueError for a change without its sign.
    """
    present, gone = set(features), set[str]()
    for change in filter(None, (change.strip() for change in changes.split(","))):
        sign, name = change[0], change[1:]
        if sign == "+":
            present.add(name)
            gone.discard(name)
        elif sign == "-":
            gone |= {name} | {f for f in present if f.startswith(_DEPENDENTS.get(name, ()))}
            present -= gone
        else:
            raise ValueError(f"the feature {change!r} starts with neither + nor -")
    return frozenset(present), frozenset(gone)

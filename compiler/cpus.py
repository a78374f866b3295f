"""CPUs by LLVM's name, with the features that affect loops and register blocks. LLVM knows the other features."""

from __future__ import annotations

from collections.abc import Set

from triton_porting_kit.compiler.caches import Caches

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

NAMED = {
    "x86_64": {
        "x86-64": frozenset[str](),
        "x86-64-v2": frozenset[str](),
        "sandybridge": frozenset({"avx"}),
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
"""Features by architecture and CPU."""

CACHES = {
    name: Caches.parse(text)
    for name, text in {
        "haswell": "32K,256K",
        "broadwell": "32K,256K",
        "skylake": "32K,256K",
        "znver2": "32K,512K,16M/8",
        "znver3": "32K,512K,32M/16",
        "znver4": "32K,1M,32M/16",
        "znver5": "48K,1M,32M/16",
        "skylake-avx512": "32K,1M",
        "cascadelake": "32K,1M",
        "icelake-server": "48K,1280K",
        "sapphirerapids": "48K,2M",
        "graniterapids": "48K,2M",
        "neoverse-n1": "64K,1M",
        "neoverse-n2": "64K,1M",
        "neoverse-v1": "64K,1M",
        "neoverse-v2": "64K,2M",
        "ampere1": "64K,2M",
    }.items()
}
"""Caches of server CPUs by name. L3 is left out where its size differs from model to model.

Sources: AMD's Software Optimization Guides (56305, 56665, 57647, 58455), Intel's Optimization Reference Manual
(248966), Arm's Technical Reference Manuals and the CPUs' product pages (Graviton 2 to 4, AmpereOne).
"""

GENERIC_CACHES = Caches.parse("48K,1M,32M/16")
"""For code that no CPU in particular runs, and CPUs that are not in the table."""

VECTOR_FEATURES = frozenset().union(*NAMED["x86_64"].values())
"""All features of x86-64 in the table."""

REQUIRED = frozenset({"64bit", "sse", "sse2"})
"""Features without which LLVM compiles nothing for x86-64, and ends the process."""

_AVX = ("avx", "f16c", "fma")
_DEPENDENTS = {
    **dict.fromkeys(("sse3", "ssse3", "sse4.1"), (*_AVX, "sse4.2")),
    "sse4.2": _AVX,
    "avx": _AVX,
    "avx2": ("avx512", "avx10", "avxvnni"),
    "f16c": ("avx512", "avx10"),
    "fma": ("avx512", "avx10"),
    "avx512f": ("avx512", "avx10"),
    "amx-tile": ("amx-",),
}
"""Features, as prefixes, that imply another one in LLVM (X86.td), by the name of that one."""

_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
"""AVX-512 is used as a whole, as in x86-64-v4. Without BW, LLVM ends the process on some shuffles of booleans, and
without DQ on some conversions of 64-bit integers."""


def without_dependents(features: Set[str], absent: Set[str]) -> frozenset[str]:
    """`features` without those that depend on one of `absent`.

    LLVM cannot select an instruction of such a feature, and ends the process.
    """
    if _AVX512 - features:
        absent = {*absent, "avx512f"}
    gone = tuple(prefix for name in _DEPENDENTS if name in absent for prefix in _DEPENDENTS[name])
    return frozenset(name for name in features if not name.startswith(gone))


_BY_NEWEST_FEATURE = (
    ("amx-tile", "sapphirerapids"),
    ("avx512fp16", "sapphirerapids"),  # where the system hides AMX
    ("avx512bf16", "znver4"),
    ("avx512f", "cascadelake"),
    ("avx2", "haswell"),
    ("avx", "sandybridge"),
)


def scheduling_cpu(triple: str, guess: str, features: Set[str]) -> str:
    """The CPU to schedule for: LLVM's guess, unless it has other vector features than `features`."""
    if not triple.startswith("x86_64") or NAMED["x86_64"].get(guess) == VECTOR_FEATURES & features:
        return guess
    return next((name for feature, name in _BY_NEWEST_FEATURE if feature in features), "x86-64")

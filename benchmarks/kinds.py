"""Kinds of CPU: who makes it, and the widest instructions that products and loops use. Each has a file of results."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.compiler import CpuTarget

from .figures import Results

FOLDER = Path(__file__).resolve().parent / "results"
_VENDORS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel", "ARM": "Arm"}
_LEVELS = (("amx-tile", "AMX"), ("avx512f", "AVX512"), ("avx2", "AVX2"), ("neon", "NEON"))
"""A feature, and what a CPU that has it is called; the first counts."""


@dataclass(frozen=True)
class Kind:
    """Such as AMD with AVX512."""

    vendor: str
    level: str

    @property
    def name(self) -> str:
        """The stem of its file of results: ``amd-avx512``."""
        return f"{self.vendor}-{self.level}".lower().replace(" ", "-")

    @property
    def exceeds_avx2(self) -> bool:
        """Whether a limit to AVX2 takes anything from it."""
        return self.level in ("AMX", "AVX512")

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.vendor}, {self.level}"


def kind_of(vendor: str, features: Set[str]) -> Kind:
    """The kind of a CPU by the vendor that it reports, and its features by LLVM's names."""
    level = next((title for feature, title in _LEVELS if feature in features), "no vectors")
    return Kind(_VENDORS.get(vendor, "other"), level)


def host_kind() -> Kind:
    """The kind of this machine's CPU, without what ``TPK_CPU_WITHOUT`` takes away."""
    return kind_of(reported_vendor(), CpuTarget.host().features)


def reported_vendor(path: Path = Path("/proc/cpuinfo")) -> str:
    """The vendor of the first CPU, as it reports it; ``ARM`` by the implementer's number, empty where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        field, _, value = (part.strip() for part in line.partition(":"))
        if field == "vendor_id":
            return value
        if field == "CPU implementer":
            return "ARM" if value == "0x41" else value
    return ""


def file_of(kind: Kind, threads: int) -> str:
    """The stem of a file of results: with more than two threads, they have one of their own, ``intel-amx-16``."""
    return kind.name if threads <= 2 else f"{kind.name}-{threads}"


def title_of(name: str) -> str:
    """The title of a kind by the name of its file."""
    stem, _, threads = name.rpartition("-")
    if threads.isdigit():
        return f"{title_of(stem)}, {threads} threads"
    titles = {
        Kind(vendor, level).name: Kind(vendor, level).title
        for vendor in (*_VENDORS.values(), "other")
        for _, level in _LEVELS
    }
    return titles.get(name, name)


def read_kinds(folder: Path = FOLDER) -> dict[str, Results]:
    """The results of every kind that was measured, by its name. Raises ValueError for a file that holds none."""
    return {path.stem: Results.read(path) for path in sorted(folder.glob("*.json"))}


def fullest(kinds: Iterable[tuple[str, Results]]) -> tuple[str, Results]:
    """The results with the most figures; of as many, those that were measured last, and of these the first by name."""
    return max(
        sorted(kinds, key=lambda kind: kind[0]),
        key=lambda kind: (len(kind[1].figures), str(kind[1].about["date"])),
    )

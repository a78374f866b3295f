"""The data caches of a CPU, and how much of them the loops of products may fill."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.errors import OptionError

MOST_WRITTEN = 32 << 20
"""Most bytes that a launch writes through the caches. An L3 of more than twice as much is shared with others."""

_FORM = "give cpu_caches or TPK_CPU_CACHES as L1,L2[,L3[/CPUS that share it]], such as 48K,1M,32M/8"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)([KMG]?)")


@dataclass(frozen=True)
class Caches:
    """Bytes of the data caches that a core uses, and how many logical CPUs share the last one."""

    l1: int
    l2: int
    l3: int = 0
    shared_by: int = 1

    @property
    def strip_bytes(self) -> int:
        """Most bytes of the second operand that one strip of columns reads.

        It is half of L1: a strip is read for all rows, and these pass through the rest. With AVX2, 32 of 48 KiB are 1
        to 4 % slower on Granite Rapids than 24.
        """
        return self.l1 // 2

    def wide_strip_bytes(self, element: str) -> int:
        """The same with AVX-512 and AMX, for packed units of type `element`: 16 KiB are enough for the rows.

        On Granite Rapids, 32 of 48 KiB take up to 13 % less time than 24 with AMX, and 4 to 6 % less for float32; on
        Zen 5 they take as much. On Sapphire Rapids, float32 was 10 % slower before four steps along K followed without
        a branch; it was not measured since. More than 32 KiB were not tried.

        For float32, a quarter of L1 is enough. On Cascade Lake, 24 of 32 KiB take 1 to 8 % less than 16, as sums are
        read and written less often, but 5 % more for int8.
        """
        rows = min(16 << 10, self.l1 // 4) if element == "f32" else 16 << 10
        return max(self.strip_bytes, min(self.l1 - rows, 32 << 10))

    @property
    def panel_bytes(self) -> int:
        """Most bytes of a panel of each packed operand: an eighth of L2, so that both stay there beside the sums."""
        return self.l2 // 8

    @property
    def kept_bytes(self) -> int:
        """Most bytes of packed panels that later programs reuse: as many as L2 has.

        Panels that do not stay in L2 are prefetched, which costs less than packing them again.
        """
        return self.l2

    @property
    def non_temporal_bytes(self) -> int:
        """The least bytes written by a launch that uses non-temporal stores: half of L3; the other half is for reads.

        On Zen 4 with 32 MiB of L3, an RMS norm that writes 16 MiB takes 0.57 of the time with one thread, and 0.69 with
        two. Together with a sum over its result, it takes 0.76 and 0.96; if it writes 8 MiB, 1.0 and 1.48.
        """
        return min(self.l3 // 2 or MOST_WRITTEN, MOST_WRITTEN)

    def __str__(self) -> str:
        """As `Caches.parse` reads it: ``48K,1M,32M/8``."""
        sizes = [_text(size) for size in (self.l1, self.l2, *([self.l3] if self.l3 else []))]
        return ",".join(sizes) + (f"/{self.shared_by}" if self.l3 else "")

    @staticmethod
    def parse(text: str) -> Caches:
        """Caches from L1, L2 and, if there is one, L3 with the CPUs that share it: ``48K,1M,32M/8``.

        Raises OptionError for other text, and for sizes that no CPU has.
        """
        last, _, sharing = text.partition("/")
        sizes = [_bytes(part) for part in last.split(",")]
        known = len(sizes) in (2, 3) and all(sizes) and (not sharing or sharing.isdigit())
        if not known or (sharing and (len(sizes) < 3 or int(sharing) < 1)):
            raise OptionError(f"the caches {text!r} cannot be read", remedy=_FORM)
        l1, l2, *rest = (size for size in sizes if size is not None)
        if not 4 << 10 <= l1 <= l2:
            raise OptionError(f"the caches {text!r}: L1 has less than 4K, or more than L2", remedy=_FORM)
        return Caches(l1, l2, *rest, *([int(sharing)] if sharing else []))

    @staticmethod
    def detect(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches | None:
        """Those of the machine, as Linux describes them for its first CPU; None where it does not.

        https://docs.kernel.org/admin-guide/abi-testing.html, ``/sys/devices/system/cpu/cpu*/cache``.
        """
        sizes: dict[int, int] = {}
        sharing = 1
        for index in sorted(folder.glob("index*")):
            try:
                level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
                sharers = (index / "shared_cpu_list").read_text().strip()
            except OSError:
                return None
            if kind == "Instruction" or not level.isdigit() or not (found := _bytes(size)):
                continue
            sizes[int(level)] = found
            if level == "3":
                sharing = _count(sharers)
        l1, l2 = sizes.get(1), sizes.get(2)
        if not l1 or not l2 or not 4 << 10 <= l1 <= l2:
            return None
        return Caches(l1, l2, sizes.get(3, 0), max(1, sharing))


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip().upper())
    return int(match[1]) * _UNITS[match[2]] if match else None


def _text(size: int) -> str:
    for unit in ("M", "K"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


def _count(cpus: str) -> int:
    """The number of CPUs in a list such as ``0-3,8-11``."""
    total = 0
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total

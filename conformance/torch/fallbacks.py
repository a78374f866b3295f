"""How many operators run without the CPU: the fallbacks that the kit's torch devices count, and their shares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.record import Record

KIND = "fallbacks"
"""The kind of evidence: `counts` has the calls of each operator that ran on the CPU."""


class Fallbacks:
    """Counts the calls that a torch device leaves to the CPU. Devices without such counts have none."""

    def __init__(self, context: Context, device: str) -> None:
        import torch

        module: Any = None if device == "cpu" else torch.get_device_module(device)
        self._module = module if hasattr(module, "fallbacks") else None
        self._context = context
        self._counts: Counter[str] = Counter()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A context whose calls are counted."""
        if self._module is None:
            yield
            return
        self._module.reset_fallbacks()
        try:
            yield
        finally:
            self._counts.update(self._module.fallbacks())

    def record(self) -> None:
        """Record what was counted as evidence."""
        if self._module is not None:
            self._context.evidence.append(
                {"kind": KIND, "what": "calls that ran on the CPU", "counts": dict(self._counts)}
            )


@dataclass(frozen=True)
class Share:
    """How many checks of a group ran without the CPU."""

    group: str
    without: int
    whole: int

    def __str__(self) -> str:
        return f"{self.without:,} of {self.whole:,} ({self.without / self.whole:.1%})"


def shares(records: Iterable[Record]) -> list[Share]:
    """The operators, compiled and eager, and the models. An operator counts if no check of it used the CPU."""
    used: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for record in records:
        for item in record.evidence:
            if item["kind"] == KIND:
                group, name = _subject(record.name)
                used[group][name] = used[group].get(name, False) or bool(item["counts"])
    return [
        Share(group, sum(not cpu for cpu in found.values()), len(found))
        for group, found in sorted(used.items())
    ]


def _subject(name: str) -> tuple[str, str]:
    """The group that a check is counted in, and what it tries: ``torch/opinfo/OPERATOR-MODE-TYPE``."""
    _, section, what = name.split("/", 2)
    if section != "opinfo":
        return section, what
    operator, mode, _ = what.rsplit("-", 2)
    return f"{mode.partition('_')[0]} operators", operator

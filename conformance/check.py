"""`Check`: one thing that a backend must do, and the collector that a module of checks fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from triton_porting_kit.conformance.levels import LEVELS

if TYPE_CHECKING:
    from triton_porting_kit.conformance.context import Context

Body = Callable[["Context"], None]

DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class Check:
    """One check. Its body records evidence in its context; a body that records none is an error of the suite.

    Bodies are deterministic: random data comes from the context's generator.
    """

    name: str
    """``level/group/what``: letters, digits, ``_ . - /``. Unique, stable between releases of the suite."""
    requirement: str
    """What a backend must do to pass, in one sentence."""
    body: Body
    seconds: float = DEFAULT_SECONDS
    """Time limit of the check when it runs alone, in seconds."""
    needs: frozenset[str] = frozenset()
    """Capabilities that a chip may lack: ``type:fp64``, ``atomic:fp32``, ``feature:dot_scaled``."""
    elements: int = 0
    """The number of elements of the largest tile; a profile may declare a limit."""
    batch: str = ""
    """Checks of the same batch may share a kernel, see `triton_porting_kit.conformance.batches`; empty: none."""
    kit_device: bool = False
    """Whether it tests the hooks of the kit's `Device`, which not every backend uses."""
    compiles: bool = False
    """Whether it is worth running where kernels are compiled only."""
    torch: str = ""
    """What it needs of the backend's torch device, as `conformance.torch.support` names it. Empty: none."""

    @property
    def level(self) -> str:
        return self.name.partition("/")[0]


class Checks:
    """Collects the checks of a module, in order."""

    def __init__(self, prefix: str, **defaults: object) -> None:
        """`prefix`: level and group, as in ``runtime/memory``. `defaults`: fields that its checks share."""
        if prefix.partition("/")[0] not in LEVELS:
            raise ValueError(f"{prefix!r} is in no level; there are {', '.join(LEVELS)}")
        self._prefix, self._defaults = prefix, defaults
        self._checks: list[Check] = []

    def __iter__(self) -> Iterator[Check]:
        return iter(self._checks)

    def add(self, name: str, requirement: str, body: Body, **fields: object) -> None:
        """Add a check ``prefix/name``. `fields`: those of `Check`; `needs` may be any iterable."""
        merged = {**self._defaults, **fields}
        needs = merged.pop("needs", ())
        assert isinstance(needs, Iterable)
        self._checks.append(
            Check(f"{self._prefix}/{name}", requirement, body, needs=frozenset(needs), **merged)  # type: ignore[arg-type]
        )

    def check(self, name: str, requirement: str, **fields: object) -> Callable[[Body], Body]:
        """Decorate the body of a check."""

        def decorate(body: Body) -> Body:
            self.add(name, requirement, body, **fields)
            return body

        return decorate

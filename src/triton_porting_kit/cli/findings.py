"""What `tpk doctor` finds, one by one."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


class Status(enum.StrEnum):
    """How a finding bears on running kernels."""

    OK = "ok"
    NOTE = "note"
    """Something optional is missing, or a choice should be looked at."""
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what is there, and what to do where something is wrong."""

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


Check = Callable[[], Iterator[Finding]]


def run_check(check: Check, name: str) -> list[Finding]:
    """The findings of a check; whatever it raises is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:
        found.append(
            Finding(name, Status.PROBLEM, describe(error), "see the message; reinstall what it names")
        )
    return found


def describe(error: BaseException) -> str:
    """An exception in a line or a few."""
    return f"{type(error).__name__}: {error}".strip()

"""The findings of `tpk doctor`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


class Status(enum.StrEnum):
    """Whether a finding prevents kernels from running."""

    OK = "ok"
    NOTE = "note"
    """Something optional is missing, or a setting should be reviewed."""
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and what to do if something is wrong."""

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


Check = Callable[[], Iterator[Finding]]


def run_check(check: Check, name: str) -> list[Finding]:
    """The findings of a check. An exception becomes a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:
        found.append(
            Finding(name, Status.PROBLEM, describe(error), "reinstall the package that the message names")
        )
    return found


def describe(error: BaseException) -> str:
    """The type and the message of an exception."""
    return f"{type(error).__name__}: {error}".strip()

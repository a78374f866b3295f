"""The list of all checks, compact: 13,000 of them are one page."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.report import code_objects
from triton_porting_kit.conformance.report.evidence import rerun
from triton_porting_kit.conformance.report.failures import first_line
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.status import BAD, Status, Verdict
from triton_porting_kit.untrusted import shown

_LENGTH = 110
"""Characters of a message, which has all of them where its failure is shown."""


def rows(report: Report) -> dict[str, Any]:
    """What the page's script is given. A row: name, status, seconds, requirement, message; texts are numbers of
    `strings`, statuses of `statuses`. The message of a check that passes says what was compiled."""
    numbers: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        return numbers.setdefault(shown(text), len(numbers))

    statuses = [*map(str, Status), str(Verdict.NOT_RUN)]
    made: list[list[Any]] = []
    for record in report.records:
        status = record.status
        message = code_objects.line(record)
        if status is not Status.PASS:
            reason = record.listing.reason if record.listing else ""
            message = f"{record.stage}: " if record.stage else ""
            message += first_line(record)[:_LENGTH] if status is not Status.UNEXPECTED_PASS else ""
            message += f" ({reason})" if reason else ""
        made.append(
            [
                record.name,
                statuses.index(status),
                float(f"{record.seconds:.3g}"),
                number(record.requirement),
                number(message),
            ]
        )
    made += [[name, len(statuses) - 1, None, 0, 0] for name in report.not_run]
    return {
        "statuses": statuses,
        "bad": [str(status) for status in Status if status in BAD],
        "strings": list(numbers),
        "rows": made,
        "rerun": shown(rerun(report.run, "").removesuffix("''")),
    }

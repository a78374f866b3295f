"""The list of all checks in a compact form: a page may have 13,000 of them."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.report import code_objects
from triton_porting_kit.conformance.report.evidence import rerun
from triton_porting_kit.conformance.report.failures import first_line
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.status import BAD, Status, Verdict
from triton_porting_kit.untrusted import shown

_LENGTH = 110
"""The maximum number of characters of a message in the list; failures show the full message."""


def rows(report: Report) -> dict[str, Any]:
    """The data of the page's script. A row is: name, status, seconds, requirement, message.

    Texts are indices into ``strings``, statuses indices into ``statuses``. The message of a check that passes lists its
    code objects.
    """
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

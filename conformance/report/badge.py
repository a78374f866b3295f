"""A badge that shows the level that a backend has reached, created from a verified report."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import GOOD, LevelResult, Report
from triton_porting_kit.conformance.report.verify import disagreements
from triton_porting_kit.conformance.status import Verdict
from triton_porting_kit.untrusted import write_file

LABEL = "triton conformance"
NOT_JUDGED = "not judged yet"
_GREEN, _YELLOW, _RED, _GREY = "#2c7a3f", "#8a6d00", "#b3261e", "#5f6368"


def run_badge(path: Path, out: Path) -> int:
    """Write the badge of a report to a file.

    Raises `ReportError` if the report cannot be read or does not follow from its evidence, or if the file cannot be
    written.
    """
    data = document.read(path)
    if found := disagreements(data):
        raise ReportError(f"{path} does not agree with its evidence, see `tpk verify`: {found[0]}")
    report = Report.from_json(data)
    text, colour = reached(report.levels, compile_only=report.compile_only)
    write_file(out, badge(text, colour).encode(), ReportError)
    print(f"{out}: {text}")
    return 0


def reached(levels: Iterable[LevelResult], *, compile_only: bool = False) -> tuple[str, str]:
    """The text and the colour of a badge, from the levels in order.

    The text names the highest level that passed together with all levels below it, and the first level that failed. A
    level that was not run completely does not count, nor do the levels above it. `compile_only`: no kernel ran.
    """
    results = list(levels)
    passed = list(itertools.takewhile(lambda result: result.verdict in GOOD, results))
    failed = [result.level for result in results if result.verdict is Verdict.FAIL]
    exceptions = any(result.verdict is not Verdict.PASS for result in passed)
    said = [passed[-1].level] if passed else []
    said += ["compiled only"] if passed and compile_only else []
    said += ["with exceptions"] if exceptions else []
    said += [f"fails {failed[0]}"] if failed else []
    colour = _RED if failed else _YELLOW if exceptions else _GREEN if passed else _GREY
    return ", ".join(said) or NOT_JUDGED, colour


def badge(text: str = NOT_JUDGED, colour: str = _GREY) -> str:
    """The badge as a self-contained SVG image."""
    left, right = _width(LABEL), _width(text)
    said = escape(f"{LABEL}: {text}", {'"': "&quot;"})
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{said}">\n'
        f"  <title>{said}</title>\n"
        f'  <rect width="{left}" height="20" fill="#333"/>\n'
        f'  <rect x="{left}" width="{right}" height="20" fill="{colour}"/>\n'
        '  <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f'    <text x="{left / 2:g}" y="14" textLength="{left - 12}">{escape(LABEL)}</text>\n'
        f'    <text x="{left + right / 2:g}" y="14" textLength="{right - 12}">{escape(text)}</text>\n'
        "  </g>\n"
        "</svg>\n"
    )


def _width(text: str) -> int:
    """The width of one half of the badge in pixels; the text is scaled to fit."""
    return round(6.4 * len(text)) + 12

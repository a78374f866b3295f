"""``junit.xml``: a report for continuous-integration systems."""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report import code_objects
from triton_porting_kit.conformance.report.evidence import in_text, rerun
from triton_porting_kit.conformance.report.model import LevelResult, Report
from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.untrusted import shown

NAME = "junit.xml"

_SKIPPED = {
    Status.UNSUPPORTED: "unsupported",
    Status.EXPECTED_FAILURE: "expected failure",
    Status.WAIVED: "waived",
}
_IN_FULL = 500
"""The number of failures whose evidence is written: CI systems limit the size of this file."""
_LENGTH = 8000
"""The maximum number of characters of the evidence of a failure."""
_SHOWN = 200
"""The number of missing checks that are listed by name."""


def text(report: Report) -> str:
    """The report with a test suite for each level, and an error for each check that was not run."""
    full = {id(record) for record in [r for r in report.records if r.status in BAD][:_IN_FULL]}
    xml = JUnitXml(f"conformance of {shown(str(report.run['backend']))}")
    for result in report.levels:
        records = [record for record in report.records if record.level == result.level]
        lost = [name for name in report.not_run if name.startswith(f"{result.level}/")]
        if records or lost or report.gone(result):
            xml.add_testsuite(_suite(report, result, records, lost, full))
    if not report.records:
        suite = TestSuite("conformance")
        suite.add_testcase(_case("conformance/run", 0, Error("no check was run", "not run")))
        xml.add_testsuite(suite)
    xml.update_statistics()
    return str(xml.tostring().decode())


def _suite(
    report: Report, result: LevelResult, records: list[Record], lost: list[str], full: set[int]
) -> TestSuite:
    suite = TestSuite(result.level)
    for key in ("backend", "suite_version", "kit_version", "commit", "triton_version", "seed"):
        suite.add_property(key, shown(str(report.run.get(key, ""))))
    suite.add_property("verdict", str(result.verdict))
    suite.add_property("meaning", LEVELS[result.level].promise(compile_only=report.compile_only))
    cases = [_of_record(record, report, id(record) in full) for record in records]
    cases += [_case(name, 0, Error("the check was planned but not run", "not run")) for name in lost]
    if gone := report.gone(result):
        failure = Failure(f"{len(gone)} mandatory checks are missing", "missing")
        failure.text = "\n".join(gone[:_SHOWN])
        cases.append(_case(f"{result.level}/mandatory-checks", 0, failure))
    suite.add_testcases(cases)
    return suite


def _of_record(record: Record, report: Report, full: bool) -> TestCase:
    status = record.status
    if status is Status.PASS:
        case = _case(record.name, record.seconds)
        if compiled := code_objects.line(record):
            case.system_out = shown(compiled)
        return case
    if status in _SKIPPED or status is Status.UNEXPECTED_PASS:
        reason = record.listing.reason if record.listing else record.message
        if status is Status.UNEXPECTED_PASS:
            case = _case(record.name, record.seconds)
            case.system_out = shown(f"passed, though the profile lists it: {reason}")
            return case
        return _case(record.name, record.seconds, Skipped(shown(f"{_SKIPPED[status]}: {reason}")))
    first = record.message.strip().partition("\n")[0][:300] or str(status)
    kind = Failure if status is Status.FAIL else Error
    result = kind(shown(first), shown(f"{status}: {record.stage}" if record.stage else str(status)))
    evidence = in_text(record)[:_LENGTH] if full else "the evidence is in report.json"
    result.text = shown(f"{record.requirement}\n\n{evidence}\n\n{rerun(report.run, record.name)}\n")
    return _case(record.name, record.seconds, result)


def _case(name: str, seconds: float, *results: Failure | Error | Skipped) -> TestCase:
    group, _, what = name.rpartition("/")
    case = TestCase(shown(what), shown(group.replace("/", ".")), round(seconds, 6))
    case.result = [*results]
    return case

"""Reports of checks that really ran."""

from __future__ import annotations

from pathlib import Path

from report_runs import metadata, write_run

from triton_porting_kit.conformance import batches, catalogue, sessions
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.build import write_reports
from triton_porting_kit.conformance.report.verify import disagreements
from triton_porting_kit.conformance.status import Status, Verdict
from triton_porting_kit.toolchain import compat


def refused(context: Context) -> None:
    """Triton knows no such thing."""
    raise NotImplementedError("by whom? </pre>")


def silent(context: Context) -> None:
    """Leaves no evidence."""


def wrong(context: Context) -> None:
    """Expects what is not so."""
    context.expect(False, "two is three", "it is two")


def test_a_real_run_agrees_with_its_report(tmp_path: Path) -> None:
    profile = Profile()
    session = sessions.open_session("cpu", profile)
    checks = [c for c in catalogue.checks(["language"]) if "/add-fp32-" in c.name]
    checks += [
        Check(f"language/own/{body.__name__}", "Something of this test holds.", body)
        for body in (refused, silent, wrong)
    ]
    records = list(batches.try_checks(checks, session))
    run = metadata(
        triton_version=".".join(map(str, compat.release())) + ".0",
        backend="cpu",
        device=session.memory.describe(),
        profile=profile.to_json(),
        options={**metadata()["options"], "select": ["add-fp32"]},
    )
    folder = write_run(tmp_path, records, [check.name for check in checks], **run)
    report = write_reports(folder, folder)
    assert disagreements(document.read(folder)) == []
    assert report.counts[Status.PASS] == len(checks) - 3 > 3
    assert report.statuses["language/own/silent"] is Status.HARNESS_ERROR
    assert report.statuses["language/own/wrong"] is Status.FAIL
    assert report.verdict is Verdict.FAIL

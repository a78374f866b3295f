"""report.html as text: what it says, what it escapes, how large it gets. Browsers are in test_report_browser.py."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from typing import Any

from report_runs import (
    LISTINGS,
    NASTY,
    PERFORMANCE,
    error,
    every_status,
    everything,
    metadata,
    record,
    report,
)

from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.page import text as page
from triton_porting_kit.conformance.report.page.figures import parts, seconds
from triton_porting_kit.conformance.report.page.view import lead, warnings


class Reader(HTMLParser):
    """The text of a page, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.elements = "", list[tuple[str, dict[str, str | None]]]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def reader(found: Report) -> Reader:
    return Reader(page(found))


def test_the_summary_is_in_the_page_itself() -> None:
    text = " ".join(reader(report(every_status(), complete=False)).text.split())
    assert "npu fail" in text
    assert "3 of 14 checks pass; 4 fail, 1 timeout, 1 crash" in text or "3 of 14 checks pass; 4 fail" in text
    assert (
        "tpk conform --backend npu --profile /opt/npu/conformance.toml --select language/arithmetic/add-i8-tile_1"
        in text
    )
    for part in (
        "SIGSEGV",
        "last words",
        "[1, 2]",
        "12.0 ulp",
        "NPU <One>",
        "16 GiB",
        "own_sub is listed",
    ):
        assert part in text


def test_markup_in_messages_is_text() -> None:
    listing = Listing("waivers", "language/*", f"reason {NASTY}", "javascript:alert(1)")
    profile = {
        **metadata()["profile"],
        "waivers": [{"pattern": NASTY, "reason": NASTY, "link": "javascript:alert(1)"}],
    }
    records = [
        record("language/arithmetic/add-fp32-tile_1", error(NASTY)),
        record("language/arithmetic/add-fp64-tile_1", error(NASTY), listing=listing),
    ]
    found = reader(report(records, profile=profile, backend=NASTY, device={"memory": NASTY}))
    assert sum(tag == "script" for tag, _ in found.elements) == 2
    assert not any(tag == "b" and not attrs for tag, attrs in found.elements if "alert" in str(attrs))
    assert not any("javascript:" in str(attrs.get("href")) for _, attrs in found.elements)
    assert "</script><script>alert('ü €')" in found.text


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page(report(every_status()))
    for tag, attrs in Reader(html).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attrs
    assert "default-src 'none'" in html
    assert not re.search(r"url\(|@import", html)


def everything_wrong() -> list[Record]:
    """All checks of the language, refused with a traceback each."""
    return [record(r.name, error(f"cannot select {r.name}: " + "x" * 2000)) for r in everything()]


def test_thirteen_thousand_checks_are_a_small_page() -> None:
    for records in (everything(), everything_wrong()):
        start = time.process_time()
        html = page(report(records))
        assert time.process_time() - start < 10
        assert len(html.encode()) < 5_000_000


def test_failures_that_look_alike_are_put_together() -> None:
    text = " ".join(reader(report(everything_wrong())).text.split())
    assert re.search(r"Failures 14,\d\d\d checks, 1 kind ", text)
    assert "evidence of 3 is shown" in text


def test_the_matrix_has_a_symbol_for_every_mark() -> None:
    html = page(report(every_status()))
    style = html[html.index("<style>") : html.index("</style>")]
    for kind in ("pass", "partial", "fail", "declared", "unsupported", "not-run"):
        assert re.search(rf'\.{kind}\b[^{{]*{{[^}}]*--s: "."', style), kind


def options(**fields: Any) -> dict[str, Any]:
    return {"options": {**metadata()["options"], **fields}}


def test_warnings_say_what_was_left_out() -> None:
    assert warnings(report(everything())) == []
    assert "shard 1 of 4" in warnings(report([], **options(shard=[1, 4])))[0]
    assert "a selection was run: add, sub" in warnings(report([], **options(select=["add", "sub"])))[0]
    assert (
        "compiled for hip:gfx942:64, and not run"
        in warnings(report([], **options(compile_only=True, target="hip:gfx942:64")))[0]
    )
    assert "did not finish" in warnings(report([], complete=False))[0]
    assert "local changes" in warnings(report(everything(), dirty=True))[0]
    assert "missing from the run" in warnings(report(everything()[1:]))[0]
    stopped = Report(run=metadata(complete=False), records=(), not_run=("language/a/b",))
    assert "1 check without a result" in warnings(stopped)[0]
    passes = [record("language/arithmetic/own_sub-i8-tile_1", listing=LISTINGS["unsupported"])]
    assert any("out of date" in line for line in warnings(report(passes)))


def test_levels_of_a_compile_only_run_promise_no_results() -> None:
    ran = page(report(everything()))
    compiled = page(report(everything(), **options(compile_only=True, target="hip:gfx942:64")))
    for level in (LEVELS[name] for name in DEFAULT_LEVELS):
        assert level.meaning.replace("'", "&#39;") in ran
    assert "right result" in ran
    assert "right result" not in compiled
    assert "Every operation of Triton&#39;s language compiles on every type" in compiled
    assert "kernels compiled, not run" in compiled


def test_no_checks_are_said_to_be_no_pass() -> None:
    assert lead(report([])) == "No check was run, so the run does not pass."


def test_figures_have_units() -> None:
    assert [seconds(v) for v in (2.5, 0.0125, 4.2e-6, 3e-9)] == ["2.5 s", "12.5 ms", "4.2 µs", "3 ns"]
    launch, copies, kernels = parts(PERFORMANCE)
    assert ("per launch, without waiting", "4.2 µs") in launch.facts
    assert copies.rows == [["host to device", "64 MiB", "5 ms", "12.5 GB/s"]]
    assert kernels.rows[0] == [
        "softmax",
        "4096 x 1024",
        "fp32",
        "2 ms",
        "100 µs",
        "20 ms",
        "10.00",
        "-",
        "-",
        "",
    ]
    assert kernels.rows[1][5:] == ["500 ms", "500.00", "1.1 ms", "1.10", ""]
    assert kernels.rows[2][3:] == ["-", "-", "-", "-", "-", "-", "no fp64"]
    assert all(len(row) == len(kernels.columns) for row in kernels.rows)
    assert parts({"launch": None, "copies": [], "kernels": []}) == []
    assert parts(None) == []
    assert parts({"error": "it hung"})[0].facts == [("reason", "it hung")]


def test_figures_are_shown() -> None:
    found = report(everything())
    text = reader(Report(run=found.run, records=found.records, performance=PERFORMANCE)).text
    assert "12.5 GB/s" in text
    assert "softmax" in text

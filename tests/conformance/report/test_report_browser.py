"""report.html in a real browser: the summary without scripts, the list with them, narrow screens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chromium import drive, run
from report_runs import NASTY, PERFORMANCE, error, every_status, everything, record, write_run, wrong

from triton_porting_kit.conformance.report.build import write_reports

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every status, long names and messages with markup."""
    folder = tmp_path_factory.mktemp("small")
    names = [r.name for r in every_status()]
    long = record("language/arithmetic/add-bf16-" + "tile_1x" * 20, error("x" * 3000))
    write_run(
        folder, [*every_status(), long], planned=[*names, long.name, "language/arithmetic/div-i8-tile_1"]
    )
    (folder / "performance.json").write_text(json.dumps(PERFORMANCE))
    write_reports(folder, folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all checks of the language, some of which fail."""
    folder = tmp_path_factory.mktemp("large")
    records = [record(r.name, wrong()) if "-fp16-" in r.name else r for r in everything()]
    write_reports(write_run(folder, records), folder)
    return folder / "report.html"


def test_the_summary_needs_no_script(small: Path, tmp_path: Path) -> None:
    found = drive(
        tmp_path,
        small,
        """const shown = (place) => page.querySelector(place).getBoundingClientRect().height > 0;
        return { text: page.body.innerText, rows: names().length, form: shown("#filter"), none: shown("noscript"),
          levels: page.querySelectorAll(".card").length, cells: page.querySelectorAll(".matrix td[class]").length };""",
        scripts=False,
    )
    assert found["text"].split()[:8] == [
        "Triton",
        "conformance",
        "suite",
        "1",
        "npu",
        "fail",
        "level",
        "language",
    ]
    assert "needs JavaScript" in found["text"]
    assert "SIGSEGV" in found["text"]
    assert (found["rows"], found["form"], found["none"], found["levels"]) == (0, False, True, 5)
    assert found["cells"] > 10


def test_scripts_in_messages_do_not_run(small: Path, tmp_path: Path) -> None:
    found = drive(
        tmp_path,
        small,
        """let ran = 0; frame.contentWindow.alert = () => { ran++; };
        set("text", "add-fp64-tile_1");
        const box = page.querySelector("#list details");
        box.open = true; await pause();
        return { ran, scripts: page.scripts.length, text: box.textContent };""",
    )
    assert (found["ran"], found["scripts"]) == (0, 2)
    assert NASTY[:40] in found["text"]
    assert "tpk conform --backend npu --profile /opt/npu/conformance.toml --select language/" in found["text"]


def test_filter_and_search(small: Path, tmp_path: Path) -> None:
    found = drive(
        tmp_path,
        small,
        """const seen = { all: count(), words: [...page.querySelectorAll("#list .status")].map((e) => e.textContent) };
        set("status", "crash"); seen.crash = names();
        set("status", "bad"); seen.bad = names().length;
        set("status", "not run"); seen.lost = names();
        set("status", ""); set("text", "C/ADD- fp32 !tile_324"); seen.search = names();
        set("text", ""); set("order", "name"); seen.sorted = names();
        seen.address = frame.contentWindow.location.hash;
        return seen;""",
    )
    assert found["all"] == "16 of 16 checks"
    assert found["crash"] == ["language/arithmetic/add-i8-tile_1"]
    assert found["bad"] == 8
    assert found["lost"] == ["language/arithmetic/div-i8-tile_1"]
    assert found["search"] == ["language/arithmetic/add-fp32-tile_1"]
    assert found["sorted"] == sorted(found["sorted"])
    assert found["address"] == "#order=name"
    assert {"pass", "waived", "unexpected pass", "timeout", "harness error"} <= set(found["words"])


def test_views_have_addresses_and_matrix_fields_lead_to_them(small: Path, tmp_path: Path) -> None:
    found = drive(
        tmp_path,
        small,
        """const seen = {};
        frame.contentWindow.location.hash = "status=timeout"; await pause(); seen.address = names();
        const row = page.querySelector("details.section tr[data-find$='/add-']");
        [...row.cells].find((cell) => cell.className === "partial").click(); await pause();
        seen.cell = [page.getElementById("text").value, names()];
        page.querySelector("#matrix tbody tr th").click(); await pause();
        seen.section = page.getElementById("text").value;
        return seen;""",
    )
    assert found["address"] == ["language/arithmetic/add-i8-tile_324"]
    text, names = found["cell"]
    assert text.startswith("language/arithmetic/add-i16-")
    assert names == ["language/arithmetic/add-i16-tile_1", "language/arithmetic/add-i16-tile_324"]
    assert found["section"] == "language/arithmetic/"


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_screen(small: Path, large: Path, tmp_path: Path, width: int) -> None:
    for path in (small, large):
        found = drive(
            tmp_path,
            path,
            """for (const box of page.querySelectorAll("details")) box.open = true;
            await pause();
            const root = page.documentElement;
            return { inner: root.clientWidth, scroll: root.scrollWidth,
              wide: [...page.body.querySelectorAll("*")].filter((e) => !e.closest(".wide, pre, .names") &&
                e.getBoundingClientRect().right > root.clientWidth + 1).slice(0, 5).map((e) => e.outerHTML.slice(0, 200)) };""",
            width=width,
        )
        assert found == {"inner": width, "scroll": width, "wide": []}


def test_thirteen_thousand_checks_stay_quick(large: Path, tmp_path: Path) -> None:
    found = drive(
        tmp_path,
        large,
        """const start = performance.now();
        set("text", "add- fp16"); const some = names().length;
        set("text", ""); set("order", "slow"); set("order", "name"); set("status", "fail");
        return { some, shown: names().length, more: !page.getElementById("more").hidden,
          each: (performance.now() - start) / 5 };""",
        virtual=False,
    )
    assert found["some"] > 0
    assert (found["shown"], found["more"]) == (200, True)
    assert found["each"] < 500, "milliseconds for a key stroke, on a busy machine"


def test_more_are_shown(large: Path, tmp_path: Path) -> None:
    script = 'page.getElementById("more").click(); return names().length;'
    assert drive(tmp_path, large, script) == 400


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_screenshots_are_taken(small: Path, tmp_path: Path, width: int, dark: bool) -> None:
    """Nothing is compared: people look at them. The page must not come out blank."""
    image = tmp_path / "page.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    run(tmp_path, *scheme, f"--window-size={width},2000", f"--screenshot={image}", small.as_uri())
    assert image.stat().st_size > 40_000

"""`tpk conform` from outside: what it prints, leaves behind, and says by its exit status."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import pytest
from conform_helpers import conform, run_in, start, statuses_in
from conformance_helpers import install_broken_backend

from triton_porting_kit.conformance.command.conform import run_conform
from triton_porting_kit.conformance.command.request import MISTAKES, Request

pytestmark = pytest.mark.xdist_group("conform")

GOOD = "runtime/fake/passes"


def test_what_passes(tmp_path: Path) -> None:
    status, printed = conform(tmp_path, selections=(GOOD,))
    assert status == 0, printed
    assert "1 pass" in printed
    assert statuses_in(tmp_path) == [(GOOD, "pass")]
    run = run_in(tmp_path)
    assert run["complete"]
    assert run["planned"] == [GOOD]
    assert run["options"]["select"] == [GOOD]
    assert run["device"]["memory"] == "kit"
    assert run["end"] >= run["start"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert [check["name"] for check in report["checks"]] == [GOOD]


def test_what_fails_is_told_with_the_command_that_reruns_it(tmp_path: Path) -> None:
    selections = ("computes_garbage or exits or aborts or passes",)
    status, printed = conform(tmp_path, selections=selections, seed=7)
    assert status == 1
    assert "fail [wrong result] runtime/fake/computes_garbage" in printed
    assert "two is two: it is 3" in printed
    assert "rerun: tpk conform --backend cpu --seed 7 --select runtime/fake/aborts" in printed
    assert "the worker process died of SIGABRT" in printed
    assert dict(statuses_in(tmp_path))["runtime/fake/exits"] == "crash"


def test_jobs_share_the_checks(tmp_path: Path) -> None:
    status, printed = conform(tmp_path, selections=("kernels/slow/0*", "language/fake/*"), jobs=2)
    assert status == 1
    found = dict(statuses_in(tmp_path))
    assert len(found) == 15
    assert [name for name in found if found[name] != "pass"] == ["language/fake/crash"], printed
    # Those of a batch go to one job: the others do not run it again.
    assert "a batch took the worker down" in printed
    assert len(run_in(tmp_path)["incidents"]) == 1


def test_quiet(tmp_path: Path) -> None:
    status, printed = conform(tmp_path, selections=("raises",), quiet=True)
    assert (status, printed) == (1, "")


def test_a_whole_run_without_its_mandatory_checks_fails(tmp_path: Path) -> None:
    profile = tmp_path / "conformance.toml"
    profile.write_text('[[waivers]]\npattern = "language/fake/crash"\nreason = "it is of no matter here"\n')
    status, printed = conform(tmp_path / "run", levels=("language",), profile=str(profile))
    assert status == 1
    assert "4 pass, 1 waived" in printed
    assert "a batch took the worker down" in printed
    (incident,) = run_in(tmp_path / "run")["incidents"]
    assert incident["signal"] == "SIGABRT"
    assert "language/fake/crash" in incident["checks"]
    assert re.search(r"\d{4,} of \d{4,} mandatory", printed)
    assert "verdict: fail" in printed


def test_expected_and_unexpected(tmp_path: Path) -> None:
    profile = tmp_path / "conformance.toml"
    profile.write_text(
        '[[expected_failures]]\npattern = "runtime/fake/raises"\nreason = "not yet"\n'
        '[[expected_failures]]\npattern = "runtime/fake/passes"\nreason = "not yet"\n'
        '[[waivers]]\npattern = "runtime/fake/aborts"\nreason = "agreed"\n'
    )
    options = {"selections": ("raises or passes or aborts",), "profile": str(profile)}
    assert conform(tmp_path / "run", **options)[0] == 0
    assert dict(statuses_in(tmp_path / "run")) == {
        "runtime/fake/raises": "expected failure",
        "runtime/fake/passes": "unexpected pass",
        "runtime/fake/aborts": "waived",
    }
    assert conform(tmp_path / "strict", strict=True, **options)[0] == 1


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "conformance.toml"
    profile.write_text('[[waivers]]\npattern = "runtime/fake/past"\nreason = "typing"\n')
    status, printed = conform(tmp_path / "run", selections=(GOOD,), profile=str(profile))
    assert status == 1
    assert "'runtime/fake/past' in [[waivers]] matches no check" in printed
    assert not (tmp_path / "run").exists()


def test_no_checks_are_no_pass(tmp_path: Path) -> None:
    status, printed = conform(tmp_path / "run", selections=("nothing_of_the_kind",))
    assert status == 1
    assert "no check" in printed


def test_a_backend_that_cannot_be_imported_fails_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_broken_backend(tmp_path, "raise OSError('libchip.so: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    # `tpk` imports Triton before it knows what it is to do.
    monkeypatch.setenv("TRITON_BACKENDS_IN_TREE", "1")
    status, printed = conform(tmp_path / "run", backend="broken", selections=("kernels/slow/0*",))
    assert status == 1
    assert "no worker can be started: libchip.so: cannot open" in printed
    assert len(statuses_in(tmp_path / "run")) == 10
    assert {status for _, status in statuses_in(tmp_path / "run")} == {"fail"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": ""}, "name it with --backend"),
        ({"backend": "nosuch"}, "no backend 'nosuch'; the registered ones are"),
        ({"profile": "nosuch.toml"}, "nosuch.toml cannot be read"),
        ({"shard": "3/2"}, "is not K/N"),
        ({"selections": ("(a",)}, "a parenthesis is not closed"),
    ],
)
def test_mistakes(tmp_path: Path, options: dict[str, object], message: str) -> None:
    request = Request(
        **{"backend": "cpu", "report": tmp_path / "run", "catalogue": "fake_catalogue"} | options
    )
    with pytest.raises(MISTAKES, match=message.replace("(", "[(]")):
        run_conform(request)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
def test_what_is_interrupted_can_be_gone_on_with(
    tmp_path: Path, number: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPK_FAKE_SLEEP", "1")  # half of the checks, so that it is not done before the signal
    process = start(tmp_path, levels=("kernels",), selections=("kernels/*",), jobs=jobs)
    records = tmp_path / "records.jsonl"
    deadline = time.monotonic() + 120
    while not (records.is_file() and records.read_text().count("\n") >= 3) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    first = statuses_in(tmp_path)
    assert 3 <= len(first) <= 12
    assert not run_in(tmp_path)["complete"]
    assert not json.loads((tmp_path / "report.json").read_text())["complete"]
    assert "--resume" in printed

    monkeypatch.delenv("TPK_FAKE_SLEEP")
    status, printed = conform(tmp_path, levels=("kernels",))
    assert status == 1
    assert "continue it with --resume" in printed.lower()

    with records.open("a") as file:
        file.write('{"name": "kernels/slow/23", "cut of')
    status, printed = conform(tmp_path, resume=True)
    assert status == 0, printed
    assert f"24 checks, {len(first)} of them done before" in printed
    assert run_in(tmp_path)["complete"]
    whole = [line for line in records.read_text().splitlines() if not line.endswith("cut of")]
    names = [json.loads(line)["name"] for line in whole]
    assert len(names) == len(set(names)) == 24


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    assert conform(tmp_path, selections=(GOOD,))[0] == 0
    status, printed = conform(tmp_path, selections=(GOOD,), seed=3, resume=True)
    assert status == 1
    assert "was started with seed 0" in printed
    run = run_in(tmp_path) | {"triton_version": "1.0"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    status, printed = conform(tmp_path, resume=True)
    assert status == 1
    assert "triton_version ('1.0'" in printed

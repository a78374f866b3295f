"""Checks that crash, hang and worse cost their own result, and no process is left behind."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import fake_catalogue
import pytest
from conformance_helpers import install_broken_backend

from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.supervisor import OUT_OF_TIME, CannotStart, Supervisor
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status

pytestmark = pytest.mark.xdist_group("supervisor")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings("cpu", catalogue="fake_catalogue", scratch=str(tmp_path_factory.mktemp("scratch")))


@pytest.fixture(scope="module")
def records(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """What every fake check of the level runtime ended in."""
    with pytest.MonkeyPatch.context() as patch, Supervisor(settings) as supervisor:
        patch.setenv("TPK_FAKE_TRIES", str(tmp_path_factory.mktemp("tries") / "tries"))
        found = list(supervisor.run(fake_catalogue.CHECKS["runtime"]))
    return {record.name.rpartition("/")[2]: record for record in found}


def process(record: Record) -> dict[str, Any]:
    (item,) = (item for item in record.evidence if item["kind"] == "process")
    return dict(item)


def test_every_check_has_a_record(records: dict[str, Record]) -> None:
    assert len(records) == len(fake_catalogue.CHECKS["runtime"]) > 15


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("segfaults", "signal", "SIGSEGV"),
        ("aborts", "signal", "SIGABRT"),
        ("exits", "exit", 3),
        ("is_exited", "exit", 7),
        ("leaves_at_once", "exit", 9),
        ("leaves_a_child", "signal", "SIGKILL"),
    ],
)
def test_a_death_is_a_crash(records: dict[str, Record], name: str, key: str, value: object) -> None:
    assert records[name].status is Status.CRASH
    assert process(records[name])[key] == value


@pytest.mark.parametrize("name", ["hangs", "hangs_with_the_interpreter", "prints_and_hangs"])
def test_a_hang_is_a_timeout(records: dict[str, Record], name: str) -> None:
    assert records[name].status is Status.TIMEOUT
    assert process(records[name])["timeout"] == 2
    assert process(records[name])["message"] == "no result after 1 s, nor after 2 s when it ran alone"
    assert name in process(records[name])["traceback"]
    assert 2 <= records[name].seconds < 6, "of the second run"


def test_launch_code_is_kept_where_checks_use_other_caches(records: dict[str, Record]) -> None:
    assert records["compiles_into_another_cache"].status is Status.PASS


def test_one_that_is_too_slow_beside_others_is_judged_by_what_it_does_alone(
    records: dict[str, Record], settings: Settings
) -> None:
    assert records["hangs_the_first_time"].status is Status.PASS
    (note,) = (n for n in settings.incidents() if n["what"] == OUT_OF_TIME)
    assert note["checks"] == ["runtime/fake/hangs_the_first_time"]
    assert note["timeout"] == 1
    assert "hangs_the_first_time" in note["traceback"]


def test_where_everything_hangs_it_is_not_all_tried_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_porting_kit.conformance.execution.supervisor.CONFIRMED", 0)
    (hangs,) = (c for c in fake_catalogue.CHECKS["runtime"] if c.name.endswith("/hangs"))
    with Supervisor(settings) as supervisor:
        (record,) = supervisor.run([hangs])
    assert process(record)["message"] == "no result after 1 s"


@pytest.mark.parametrize(
    ("name", "status", "stage"),
    [
        ("passes", Status.PASS, ""),
        ("raises", Status.FAIL, "check"),
        ("records_nothing", Status.HARNESS_ERROR, ""),
        ("computes_garbage", Status.FAIL, "wrong result"),
        ("writes_out_of_bounds", Status.FAIL, "out-of-bounds write"),
        ("prints_garbage", Status.PASS, ""),
        ("crashes_in_a_launch", Status.CRASH, "launched"),
        ("crashes_in_the_compiler", Status.CRASH, "compiled"),
        ("exits", Status.CRASH, "check"),
    ],
)
def test_status_and_stage(records: dict[str, Record], name: str, status: Status, stage: str) -> None:
    assert (records[name].status, records[name].stage) == (status, stage)


def test_what_it_printed_is_kept(records: dict[str, Record]) -> None:
    assert process(records["segfaults"])["output"] == "about to touch NULL"
    assert "garbage" in process(records["prints_and_hangs"])["output"]


def test_a_lost_device_is_reset(records: dict[str, Record]) -> None:
    assert records["loses_the_device"].status is Status.FAIL
    assert records["was_reset"].status is Status.PASS


def test_a_device_that_does_not_answer_gets_a_new_worker(records: dict[str, Record]) -> None:
    assert "illegal memory access" in records["breaks_the_device"].message
    assert records["has_a_device"].status is Status.PASS


def test_no_process_is_left_behind(records: dict[str, Record], settings: Settings) -> None:
    (child,) = re.findall(r"child (\d+)", process(records["leaves_a_child"])["output"])
    assert not alive(int(child))
    assert {path.name for path in Path(settings.scratch).iterdir()} <= {
        "cache",
        "gate",
        "incidents.jsonl",
        "room",
    }


def alive(pid: int) -> bool:
    """Whether a process runs, and is not only waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_of_a_batch_that_crashes_each_is_run_alone(settings: Settings) -> None:
    with Supervisor(settings) as supervisor:
        found = {r.name: r.status for r in supervisor.run(fake_catalogue.CHECKS["language"])}
    crash = found.pop("language/fake/crash")
    assert crash is Status.CRASH
    assert len(found) == 4
    assert set(found.values()) == {Status.PASS}


def test_the_worker_dies_with_the_supervisor(settings: Settings) -> None:
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        supervisor = Supervisor(settings)
        supervisor.start()
        assert supervisor._worker is not None
        os.write(writer, str(supervisor._worker._process.pid).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    worker = int(os.read(reader, 20))
    deadline = time.monotonic() + 60
    while alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(worker)


@pytest.mark.parametrize("damage", ["raise OSError('libchip.so: cannot open')", "import os; os.abort()"])
def test_a_worker_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    install_broken_backend(tmp_path, damage)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with Supervisor(Settings("broken", catalogue="fake_catalogue")) as supervisor:
        with pytest.raises(CannotStart):
            supervisor.start()
        found = list(supervisor.run(fake_catalogue.CHECKS["kernels"]))
    assert len(found) == len(fake_catalogue.CHECKS["kernels"])
    assert {record.stage for record in found} == {"imported"}
    assert {record.status for record in found} <= {Status.FAIL, Status.CRASH}


def test_no_such_backend() -> None:
    with (
        Supervisor(Settings("nosuch")) as supervisor,
        pytest.raises(CannotStart, match="registered ones are"),
    ):
        supervisor.start()

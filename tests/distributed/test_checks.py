"""The checks of the level `distributed`: they fail on what they should notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triton_porting_kit import conformance
from triton_porting_kit.conformance.distributed import checks, modelled, overlapped, planting
from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.conformance.profile import FEATURES
from triton_porting_kit.errors import MissingHook

CHECKS = {check.name.removeprefix("distributed/"): check for check in checks.CHECKS}


class Context:
    """What checks use of a context; a condition that does not hold is remembered."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.holding = 0
        self.device = self
        self.session = self
        self.target = self
        self.backend = "cpu"

    def open_group(self, *_: Any) -> object:
        return self

    def close_group(self) -> None: ...

    def expect(self, condition: bool, what: str, message: str = "", **_: Any) -> None:
        self.holding += bool(condition)
        if not condition:
            self.failed.append(f"{what}: {message}")

    def refuses(self, what: str, call: Callable[[], Any], types: Any) -> None:
        with pytest.raises(types):
            call()
        self.holding += 1


class Answers:
    """Stands for `Workers`: gives a function's answer from a table, the last one for every rank."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table

    def __call__(self, count: int, **_: Any) -> Answers:
        return self

    def run(self, function: Callable[..., Any], count: int, *arguments: Any) -> Any:
        given = self.table[function.__name__]
        return given(count, *arguments) if callable(given) else [given] * count

    def start(self, function: Callable[..., Any], count: int, *arguments: Any, timeout: float = 0.0) -> None:
        self.started = function.__name__

    def answer(self, rank: int) -> Any:
        return self.table[self.started]

    def close(self) -> None: ...


def run(monkeypatch: pytest.MonkeyPatch, name: str, table: dict[str, Any]) -> Context:
    context = Context()
    monkeypatch.setattr(checks, "Workers", Answers(table))
    CHECKS[name].body(context)  # type: ignore[arg-type]
    return context


GOOD: dict[str, dict[str, Any]] = {
    "order/2": {"passing": 0, "reuse": 0, "buffering": 0},
    "collectives/2": {"compare": []},
    "overlapped/2": {"products": [], "experts": [], "attention": []},
    "delays/2": {"barriers": 0, "again": 0},
    "failures/endless-wait": {
        "starve": "rank 0 waits in a kernel for element 0 of allocation 1 to reach 7; "
        "rank 1 waits in a kernel for element 1 of allocation 1 to reach 8"
    },
}


@pytest.mark.parametrize("name", GOOD)
def test_right_answers_pass_and_each_wrong_one_fails(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = run(monkeypatch, name, GOOD[name])
    assert (right.failed, right.holding > 0) == ([], True)
    wrong: dict[type, Any] = {int: 1, list: ["a wrong sum"], str: "no error"}
    for function, answer in GOOD[name].items():
        assert run(monkeypatch, name, GOOD[name] | {function: wrong[type(answer)]}).failed, function


def test_a_device_without_groups_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise MissingHook("no hook open_group")

    monkeypatch.setattr(Context, "open_group", none)
    with pytest.raises(MissingHook):
        CHECKS["order/2"].body(Context())  # type: ignore[arg-type]


def test_checks_of_devices_need_groups_and_those_of_the_model_do_not() -> None:
    assert "groups" in FEATURES
    for name, check in CHECKS.items():
        assert (check.needs, check.kit_device) == (
            (frozenset(), False) if name.startswith("model/") else (frozenset({"feature:groups"}), True)
        )


def test_the_schema_of_reports_names_the_levels() -> None:
    schema = json.loads((Path(conformance.__file__).parent / "report" / "schema.json").read_text())
    assert schema["definitions"]["check"]["properties"]["level"]["enum"] == [*LEVELS]


def test_a_model_check_reports_what_the_program_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.modelled, "in_process", lambda name: f"{name}: UnorderedAccess")
    context = Context()
    CHECKS["model/put"].body(context)  # type: ignore[arg-type]
    assert context.failed == [f"{modelled.requirement('put')}: put: UnorderedAccess"]


def test_faults_are_planted_in_every_function_that_communicates() -> None:
    found = planting.faults()
    assert len({fault.name for fault in found}) == len(found)
    for fault in found:
        compile(fault.text, fault.name, "exec")
    rules = {fault.rule for fault in found}
    assert rules == {"removed", "weaker", "peer", "amount", "loop", "chunk"}
    for module, calls in (("language", 12), ("kernels", 17), ("overlapped", 17)):
        assert sum(fault.rule == "removed" and module in fault.name for fault in found) >= calls
    assert {name for fault in found for name in fault.programs} <= {*modelled.PROGRAMS, modelled.THREADS}


def test_oracles_notice_a_wrong_result() -> None:
    class Array:
        def numpy(self) -> Any:
            return np.array([1.0, 2.0, 3.001])

    assert overlapped._error("a sum", Array(), np.array([1.0, 2.0, 3.0]))  # type: ignore[arg-type]

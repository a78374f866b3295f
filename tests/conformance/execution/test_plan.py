"""Planning: what is tried, in which order, and what is an error."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.execution.plan import PlanError, batches, load_checks, make_plan
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.shards import Shard

SETTINGS = Settings("cpu")


def test_levels_are_in_their_order() -> None:
    plan = make_plan(Settings("cpu", catalogue="fake_catalogue"), ["language", "runtime"])
    levels = [check.level for check in plan.checks]
    assert levels == sorted(levels, reverse=True)
    assert set(levels) == {"runtime", "language"}


@pytest.mark.parametrize(
    ("levels", "selections", "message"),
    [
        (["speed"], [], "no level 'speed'"),
        (["language"], ["nothing-of-this-name"], "selected by 'nothing-of-this-name'"),
        (["language"], ["runtime/*"], "no check of language is selected"),
    ],
)
def test_nothing_to_do_is_an_error(levels: list[str], selections: list[str], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(SETTINGS, levels, selections)


def test_a_shard_without_checks_is_an_error() -> None:
    with pytest.raises(PlanError, match="shard 5/5"):
        make_plan(SETTINGS, ["language"], ["language/arithmetic/add-fp32-scalar"], Shard(5, 5))


def test_checks_of_the_kits_device_apply_to_it_only() -> None:
    levels = ["runtime", "language"]
    of_torch = make_plan(SETTINGS, levels, description={"kit_device": False})
    of_the_kit = make_plan(SETTINGS, levels, description={"kit_device": True})
    assert of_the_kit.not_applicable == ()
    assert not any(check.kit_device for check in of_torch.checks)
    assert len(of_torch.checks) + len(of_torch.not_applicable) == len(of_the_kit.checks)


def test_checks_that_say_nothing_when_compiled_do_not_apply_then() -> None:
    plan = make_plan(Settings("cpu", target="cpu:host:1"), ["runtime", "language"])
    assert all(check.compiles for check in plan.checks)
    assert plan.not_applicable


def test_if_none_applies_it_is_an_error() -> None:
    (name,) = [check.name for check in load_checks(SETTINGS, ["runtime"]) if check.kit_device][:1]
    with pytest.raises(PlanError, match="none of the 1 selected checks applies"):
        make_plan(SETTINGS, ["runtime"], [name], description={"kit_device": False})


def test_batches_stay_together() -> None:
    checks = load_checks(SETTINGS, ["language"])[:200]
    found = batches(checks)
    assert [check for batch in found for check in batch] == checks
    assert len(found) == len({check.batch for check in checks})

"""Shards are parts of a run: every check is in exactly one."""

from __future__ import annotations

import json

import pytest

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.plan import load_checks
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.shards import DURATIONS, Shard, ShardError, share


def check(name: str, batch: str = "") -> Check:
    return Check(f"runtime/{name}", "It works.", lambda context: None, batch=batch)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_all_shards_together_are_all_checks(count: int) -> None:
    checks = load_checks(Settings("cpu"), ["runtime", "language", "kernels"])
    shares = [share(checks, Shard(number, count)) for number in range(1, count + 1)]
    names = [check.name for part in shares for check in part]
    assert sorted(names) == sorted(check.name for check in checks)
    assert all(shares)
    batches = [{check.batch for check in part if check.batch} for part in shares]
    assert sum(map(len, batches)) == len(set.union(*batches))  # none is torn


def test_shards_are_of_about_the_same_length() -> None:
    durations: dict[str, float] = json.loads(DURATIONS.read_text())
    checks = load_checks(Settings("cpu"), ["runtime", "language", "kernels"])
    loads = [
        sum(durations.get(unit, 0.5) for unit in {c.batch or c.name for c in share(checks, Shard(number, 4))})
        for number in range(1, 5)
    ]
    assert max(loads) < 1.05 * min(loads)


def test_the_longest_is_given_first() -> None:
    checks = [check(name) for name in "abcd"]
    durations = {"runtime/a": 1.0, "runtime/b": 1.0, "runtime/c": 2.0, "runtime/d": 4.0}
    parts = [[c.name[-1] for c in share(checks, Shard(n, 2), durations)] for n in (1, 2)]
    assert parts == [["d"], ["a", "b", "c"]]


def test_the_order_of_checks_stays() -> None:
    checks = [check("b", "batch"), check("a"), check("c", "batch")]
    assert share(checks, Shard(1, 1), {}) == checks


def test_most_units_were_measured() -> None:
    durations = json.loads(DURATIONS.read_text())
    units = {c.batch or c.name for c in load_checks(Settings("cpu"), ["runtime", "language", "kernels"])}
    assert len(units & set(durations)) > 0.9 * len(units), "measure again, as docs/conformance.md says"


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "-1/2", "1/2/3", "a/b", "1/0"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(ShardError, match="1 to N"):
        Shard.parse(text)


def test_a_shard() -> None:
    assert Shard.parse("2/5") == Shard(2, 5)
    assert str(Shard(2, 5)) == "2/5"

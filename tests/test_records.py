"""Data classes that are made quickly behave as those of `dataclasses`, but for being frozen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from triton_porting_kit import records


def make(dataclass: Callable[..., Any]) -> tuple[type[Any], ...]:
    @dataclass(frozen=True)
    class Pair:
        left: int
        right: tuple[int, ...] = ()
        note: str = field(default="", compare=False)
        secret: int = field(default=0, repr=False)

        @property
        def total(self) -> int:
            return self.left + sum(self.right)

    @dataclass(frozen=True)
    class Triple(Pair):
        third: list[int] = field(default_factory=list)

    @dataclass
    class Changing:
        value: float

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    @dataclass(eq=False)
    class Identity:
        value: int

    return Pair, Triple, Changing, Empty, Own, Identity


ORACLE, OURS = make(dataclasses.dataclass), make(records.dataclass)


def instances(classes: tuple[type[Any], ...]) -> list[Any]:
    pair, triple, changing, empty, own, identity = classes
    return [
        pair(1), pair(1), pair(1, (2,)), pair(1, note="x"), pair(1, secret=2), triple(1), triple(1, third=[3]),
        changing(1.0), changing(1.0), changing(float("nan")), empty(), empty(), own(1), own(2), identity(1), identity(1),
    ]  # fmt: skip


def test_comparing_and_hashing() -> None:
    expected, found = instances(ORACLE), instances(OURS)
    for i, (a, x) in enumerate(zip(expected, found, strict=True)):
        for j, (b, y) in enumerate(zip(expected, found, strict=True)):
            assert (a == b) == (x == y), (i, j)
            assert (a != b) == (x != y), (i, j)
        assert (a == 1) == (x == 1)
    for a, x in zip(expected, found, strict=True):
        try:
            hash(a)
        except TypeError:
            with pytest.raises(TypeError, match="unhashable"):
                hash(x)
        else:
            assert isinstance(hash(x), int)
    assert len(set(found[:5])) == len(set(expected[:5])) == 3


def test_printing_and_replacing() -> None:
    for a, x in zip(instances(ORACLE), instances(OURS), strict=True):
        if type(a).__name__ != "Identity":
            assert repr(a) == repr(x)
    assert dataclasses.replace(OURS[0](1), right=(4,)).total == 5
    assert [f.name for f in dataclasses.fields(OURS[1])] == ["left", "right", "note", "secret", "third"]
    with pytest.raises(TypeError, match="left"):
        OURS[0]()

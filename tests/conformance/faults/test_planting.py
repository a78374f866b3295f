"""Replacing methods of the test backend's classes, and those of no other."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.faults.fault import Seams, both, method, nothing, rewrite


class Real:
    def plus(self, number: int) -> int:
        return number + 1

    @classmethod
    def kind(cls) -> str:
        return cls.__name__

    @staticmethod
    def twice(number: int) -> int:
        return 2 * number


def made(apply: Any) -> type[Real]:
    class Planted(Real):
        pass

    seams = Seams()
    apply(seams)
    seams.patch("device", Planted)
    return Planted


def test_methods_are_given_the_real_one() -> None:
    planted = made(method("device", plus=lambda real, self, number: 10 * real(self, number)))
    assert planted().plus(4) == 50
    assert Real().plus(4) == 5


def test_class_methods() -> None:
    planted = made(method("device", kind=lambda real, cls: real(cls) + "!"))
    assert planted.kind() == "Planted!"
    assert planted().kind() == "Planted!"


def test_static_methods() -> None:
    planted = made(method("device", twice=lambda real, number: real(number) + 1))
    assert planted.twice(4) == 9


def test_other_owners_are_left_alone() -> None:
    assert made(method("driver", plus=lambda real, self, number: 0))().plus(4) == 5


def test_rewrites_follow_one_another() -> None:
    seams = Seams()
    both(rewrite("llir", lambda text: text + "a"), rewrite("llir", lambda text: text + "b"))(seams)
    nothing(seams)
    assert seams.rewritten("llir", "x") == "xab"
    assert seams.rewritten("ttir", "x") == "x"

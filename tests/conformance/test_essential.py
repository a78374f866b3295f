"""What is essential cannot be declared away."""

from __future__ import annotations

import triton  # noqa: F401

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.essential import ESSENTIAL
from triton_porting_kit.conformance.profile import Capabilities, Profile
from triton_porting_kit.conformance.record import Listing


def check(name: str) -> Check:
    return Check(name, "It does.", lambda context: None, needs=frozenset({"type:i32"}))


def test_essential_checks_exist_on_every_level_of_fixed_checks() -> None:
    found = {
        check.name: check for check in catalogue.checks(["registration", "runtime", "language", "kernels"])
    }
    assert set(ESSENTIAL) <= set(found)
    assert {found[name].level for name in ESSENTIAL} == {"registration", "runtime", "language", "kernels"}
    assert not any(found[name].kit_device for name in ESSENTIAL)


def test_essential_checks_are_neither_unsupported_nor_waived() -> None:
    for name in ("unsupported", "waivers"):
        profile = Profile(entries=(Listing(name, "*", "no"),))
        assert profile.listing(check("language/other")) is not None
        assert profile.listing(check(ESSENTIAL[0])) is None


def test_essential_checks_are_not_covered_by_capabilities() -> None:
    profile = Profile(capabilities=Capabilities(types=("fp32",)))
    assert profile.listing(check("language/other")) is not None
    assert profile.listing(check(ESSENTIAL[0])) is None


def test_essential_checks_may_be_expected_to_fail() -> None:
    expected = Listing("expected_failures", "*", "not yet")
    profile = Profile(entries=(Listing("waivers", "*", "no"), expected))
    assert profile.listing(check(ESSENTIAL[0])) == expected

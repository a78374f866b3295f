"""Profiles that come with the suite and with backends say something about checks that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit import backends, conformance
from triton_porting_kit.conformance import catalogue, profile

PROFILES = [
    *sorted((Path(conformance.__file__).parent / "profiles").glob("*.toml")),
    *sorted(Path(backends.__file__).parent.glob("*/conformance.toml")),
]


def test_there_are_some() -> None:
    assert {"nvidia.toml", "conformance.toml"} <= {path.name for path in PROFILES}


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_pattern_matches_a_check(path: Path) -> None:
    profile.load(path).verify_patterns(catalogue.checks())

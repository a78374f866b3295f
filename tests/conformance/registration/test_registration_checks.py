"""The CPU backend passes every check of the level `registration`."""

from __future__ import annotations

import pytest
from levels_helpers import checks_of, tried

from triton_porting_kit.conformance.status import Status


@pytest.mark.parametrize("name", checks_of("registration"))
def test_passes(name: str) -> None:
    record = tried(checks_of("registration")[name])
    assert record.status is Status.PASS, f"{record.stage}: {record.message}"


def test_names_and_sentences_are_what_they_should_be() -> None:
    for check in checks_of("registration").values():
        assert check.name.isascii()
        assert set(check.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/"), (
            check.name
        )
        assert check.requirement.endswith((".", ".)")), check.requirement

"""The level `language` of the conformance suite on every level of instructions."""

from __future__ import annotations

from pathlib import Path

import pytest
from trials import trial

from triton_porting_kit.compiler import ISA_LEVELS


@pytest.mark.parametrize(("part", "level"), list(enumerate(ISA_LEVELS)), ids=ISA_LEVELS)
def test_a_share_of_the_language(part: int, level: str, tmp_path: Path) -> None:
    trial("language_level", level, part, 100, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("level", ISA_LEVELS)
def test_the_whole_language(level: str, tmp_path: Path) -> None:
    assert trial("language_level", level, 0, 1, tmp_path)["run"] > 10_000

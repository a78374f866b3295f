"""Every published cheat is caught, and by what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_helpers import HAS_TORCH, HERE, codes, judged

from triton_porting_kit.conformance.judge import cheats
from triton_porting_kit.conformance.judge.cheats import CHEATS, SOURCES
from triton_porting_kit.conformance.judge.process import Nursery

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_is_caught(name: str, nursery: Nursery) -> None:
    cheat = CHEATS[name]
    if cheat.arrays == "torch" and not HAS_TORCH:
        pytest.skip("it calls torch")
    source = (HERE / "cheats" / f"{name}.py").read_bytes()
    several = {"torch", "mute"} <= set(cheat.caught)  # what two phases find
    evidence, _ = judged(nursery, source, cheat.task, arrays=cheat.arrays, quick=not several)
    assert evidence["verdict"] != "right"
    assert set(cheat.caught) <= codes(evidence), evidence["findings"]


def test_every_cheat_has_a_candidate_and_names_its_source() -> None:
    files = {path.stem: path.read_text() for path in (HERE / "cheats").glob("*.py")}
    assert set(files) == set(CHEATS)
    for name, cheat in CHEATS.items():
        assert SOURCES[cheat.source][1] in files[name], name
    assert len(CHEATS) >= 25


def test_the_page_has_the_tables() -> None:
    page = (ROOT / "docs" / "judge.md").read_text()
    assert cheats.document() in page, "run `make docs`"
    assert cheats.rules() in page, "run `make docs`"

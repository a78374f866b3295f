"""docs/support.md is what the table says."""

from __future__ import annotations

from pathlib import Path

from triton_porting_kit.conformance.language import OPS, support
from triton_porting_kit.conformance.language.table import ALL

ROOT = Path(__file__).resolve().parents[3]


def test_document_is_current() -> None:
    assert (ROOT / "docs" / "support.md").read_text(encoding="utf-8") == support.document(), "run `make docs`"


def test_entries_are_told_apart() -> None:
    assert len({op.name for op in OPS}) == len(OPS)
    for op in OPS:
        names = [shape.name for shape in op.shapes]
        assert len(set(names)) == len(names), op.name
        assert set(op.types) | set(op.refused) <= set(ALL)
        assert not set(op.types) & set(op.refused), op.name
        assert op.types or op.refused, op.name


def test_sample_shows_every_section() -> None:
    from test_language_table import BATCHES, sampled

    assert {BATCHES[batch][0].op.section for batch in sampled()} == {op.section for op in OPS}

"""The picture of a plan: a rectangle for each buffer, within the panel of its memory."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from triton_porting_kit import chips
from triton_porting_kit.compiler.loops.ir.program import Block, Program
from triton_porting_kit.compiler.tiles.lifetimes import Lifetime
from triton_porting_kit.compiler.tiles.picture import picture
from triton_porting_kit.compiler.tiles.place import arranged
from triton_porting_kit.compiler.tiles.plan import Plan


def test_every_buffer_is_drawn_to_scale() -> None:
    found = [
        Lifetime(None, "vector", size, "load", 3, first, last)
        for size, first, last in ((64, 0, 4), (128, 2, 9))
    ]
    plan = Plan(Program("a<b", Block([]), [], [], None), arranged(found, 64))
    root = ElementTree.fromstring(picture(plan, chips.load("n1")))
    drawn = [each for each in root.iter() if each.get("class") == "buffer"]
    assert len(drawn) == 2
    small, large = sorted(drawn, key=lambda each: float(each.get("height", "0")))
    assert float(large.get("height", "0")) == pytest.approx(2 * float(small.get("height", "0")), abs=0.3)
    assert float(large.get("width", "0")) > float(small.get("width", "0"))
    titles = ["".join(each.itertext()) for each in drawn]
    assert any("128 bytes" in title for title in titles)

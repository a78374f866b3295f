"""The table of operations in Triton's own interpreter, where that is right: a second oracle for the kernels and results.

Where it is wrong, `WRONG` says so and why; every other result has to be what the table expects, as the CPU backend's
has to be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language.table import FP8, Case
from triton_porting_kit.toolchain import compat

pytestmark = [pytest.mark.table, pytest.mark.slow]

RELEASE = compat.TRIED[-1]
"""The interpreters of older releases are wrong in more ways."""

CASES = {case.id: case for case in language.cases(RELEASE)}
SECTIONS = list(
    dict.fromkeys(op.section for op in language.OPS if op.section not in ("libdevice", "Inline PTX"))
)


@dataclass(frozen=True)
class Wrong:
    """Where the interpreter is wrong, or gives up: in operations whose names start so, on these types."""

    reason: str
    ops: tuple[str, ...] = ("",)
    kinds: tuple[str, ...] = ()

    def covers(self, case: Case) -> bool:
        return case.op.name.startswith(self.ops) and (not self.kinds or case.kind.name in self.kinds)


WRONG = (
    Wrong("bf16 is computed with as if its bit patterns were integers", kinds=("bf16",)),
    Wrong("conversions to bf16 drop what it has no bits for, and mistake denormals", ("to_bf16",)),
    Wrong(
        "float8e4b15 cannot be converted: its dtype lacks what the conversion asks for",
        ("to_", "dot"),
        ("fp8e4b15",),
    ),
    Wrong("float8e4b15 cannot be converted: its dtype lacks what the conversion asks for", ("to_fp8e4b15",)),
    Wrong("NaN, infinity and denormals of 8-bit types are taken for numbers", ("to_", "dot"), FP8),
    Wrong(
        "what 8-bit types are too small for wraps around in place of saturating",
        tuple(f"to_{t}" for t in FP8),
    ),
    Wrong("full() of an 8-bit type stores the number as a bit pattern", ("full",), FP8),
    Wrong("rounding toward zero overflows to NaN and mistakes denormals", ("to_fp16_rtz", "to_bf16_rtz")),
    Wrong("`not` of a tile negates all of it in Python", ("not",), ("i1",)),
    Wrong(
        "functions are numpy's of fp32, which are off by more than a unit", ("exp", "log", "sin"), ("fp32",)
    ),
    Wrong("it has no exchange of floating-point numbers", ("atomic_xchg",), ("fp32", "fp64")),
    Wrong("it knows no products of parts in bf16", ("dot_bf16_parts",)),
    Wrong("denormals of float8e5 are taken for others", ("dot_scaled_e5m2",)),
    Wrong(
        "descriptors want blocks that start at multiples of 16 bytes", ("descriptor_load", "descriptor_store")
    ),
    Wrong("it has no atomic operations on descriptors", ("descriptor_atomic",)),
    Wrong("it has no map_elementwise", ("map_elementwise",)),
)


@pytest.mark.parametrize("section", SECTIONS if compat.release() == RELEASE else [])
def test_interpreter_agrees(section: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triton_porting_kit.conformance.language.interpreter", section],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    assert set(found) == {case.id for case in CASES.values() if case.op.section == section}
    failed = {name: wrong for name, wrong in found.items() if wrong}
    unexplained = {
        name: wrong for name, wrong in failed.items() if not any(w.covers(CASES[name]) for w in WRONG)
    }
    assert unexplained == {}
    assert len(failed) < len(found)


def test_explanations_name_something() -> None:
    for wrong in WRONG:
        assert any(wrong.covers(case) for case in CASES.values()), wrong.reason

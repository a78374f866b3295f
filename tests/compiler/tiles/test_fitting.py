"""Whether tiles fit is found out without generating code, and as compiling finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import chip_kernels
import pytest

from triton_porting_kit import chips
from triton_porting_kit.cli.compile import structured
from triton_porting_kit.compiler import Pipeline, npu_pipeline
from triton_porting_kit.compiler.tiles.planning import Planned, planning

SCRIPT = Path(__file__).with_name("fits_agree.py")


@pytest.mark.parametrize(
    ("part", "configurations"), [("7/200", 13), pytest.param("0/1", 2580, marks=pytest.mark.slow)]
)
def test_planning_agrees_with_compiling(part: str, configurations: int) -> None:
    command = [sys.executable, str(SCRIPT), "--part", part, "--processes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"{configurations} configurations, 0 differ" in done.stdout


@pytest.mark.parametrize(("size", "last"), [(64, "placed"), (512, "loops")], ids=["small", "large"])
def test_planning_ends_as_soon_as_it_knows(size: int, last: str) -> None:
    """Where all tensors have room, the loops need not be written."""
    form = structured(
        chip_kernels.large_softmax, "*fp32:16, *fp32:16, *fp32:16, i32, i32", (f"B={size}",), chip_kernels
    )
    stages = npu_pipeline(chips.load("n1")).after("structured")
    before = Pipeline(tuple(stage for stage in stages.until(last).stages if stage.name != last))
    with planning():
        source = list(before.run(form, {}).values())[-1]
        with pytest.raises(Planned) as raised:
            stages.stages[stages.index(last)].run(source, {})
    assert raised.value.plan.used("vector") > 0
    assert "obj" in stages.run(form, {})  # outside, all stages run

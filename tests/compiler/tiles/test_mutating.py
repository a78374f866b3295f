"""Every mutant of a kernel of the suite is found; the mutants of all kernels are run by ``mutate_kernels.py``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mutating import mutants

SCRIPT = Path(__file__).with_name("mutate_kernels.py")
TEXT = """module {
  func.func @kernel(%x: !llvm.ptr, %n: i64) attributes {tpk.kernel} {
    %zero = arith.constant 0 : i64
    %size = arith.constant 16 : i64
    %a = "tpk.npu_buffer"() {bytes = 64 : i64, copies = 2 : i64, memory = "vector"} : () -> !llvm.ptr
    %b = llvm.getelementptr %a[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %t = "tpk.npu_dma"(%b, %x, %size, %zero, %HIGH) {direction = "load", element = "f32", operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0>, shape = array<i64: 16>, unit = "dma0"} : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> i64
    "tpk.npu_wait"(%t) {unit = "dma0"} : (i64) -> ()
    return
  }
}
"""


@pytest.mark.parametrize(
    ("high", "bounds"), [("size", {"low 0 +1", "high 0 -1"}), ("n", {"low 0 +1", "high 0 -1", "high 0 +1"})]
)
def test_mutants_of_a_text(high: str, bounds: set[str]) -> None:
    found = list(mutants(TEXT.replace("%HIGH", f"%{high}")))
    kinds = [mutant.kind for mutant in found]
    assert kinds == ["wait", "copies", *["bound"] * len(bounds)]
    assert {mutant.what.partition(": ")[2] for mutant in found if mutant.kind == "bound"} == bounds
    wait, copies, *others = found
    assert "npu_wait" not in wait.text
    assert re.search(r"getelementptr %a\[%mutant_zero\]", copies.text)
    for mutant in others:
        assert "%mutant_bound" in mutant.text
        assert mutant.text.count("%mutant_bound") == 2
    assert all(mutant.text.count("npu_dma") == 1 for mutant in found)


@pytest.mark.parametrize(
    ("only", "count"), [("gelu", 6), pytest.param("", 0, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_mutants_are_found(only: str, count: int) -> None:
    command = [sys.executable, str(SCRIPT), "--only", only, "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = sum(int(number) for number in re.findall(r": (\d+) mutants;", done.stdout))
    assert found == count if count else found > 500

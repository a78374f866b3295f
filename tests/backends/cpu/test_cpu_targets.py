"""Kernels on lesser CPUs: the same results without AVX-512, and without anything newer than SSE2."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from triton_porting_kit.compiler import ISA_LEVELS

REGISTERS = {"avx2": ("ymm", "zmm"), "sse2": ("xmm", "ymm")}

SCRIPT = """
import sys
from triton.runtime import driver
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.matmul import DEFAULT_TILES
from triton_porting_kit.kernels.places import DevicePlace

place = DevicePlace(driver.active.device)
for dtype in ("float32", "float16", "bfloat16"):
    for case in (
        cases.vector_add_case(1, dtype),
        cases.vector_add_case(1823, dtype),
        cases.softmax_case(17, 781, dtype),
        cases.matmul_case(33, 65, 129, dtype, tiles=DEFAULT_TILES),
    ):
        for deviation in case.check(place):
            assert deviation.ok, (case.id, deviation)
            print(case.id)
"""

ASSEMBLY = """
import sys
from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.kernels import vector_add
from triton.backends.compiler import GPUTarget
import triton

source = triton.compiler.ASTSource(
    vector_add.vector_add_kernel,
    {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32", "BLOCK": "constexpr"},
    {"BLOCK": 256},
)
compiled = triton.compile(source, target=GPUTarget("cpu", "host", 1))
print(codegen.emit_assembly(compiled.asm["llir"], CpuTarget.host()))
"""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the features that are switched off are those of x86-64"
)


def _run(script: str, level: str) -> str:
    environment = {**os.environ, **ISA_LEVELS[level].environment()}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("level", REGISTERS)
def test_kernels_are_right_on_lesser_cpus(level: str) -> None:
    assert len(_run(SCRIPT, level).split()) == 12


@pytest.mark.parametrize("level", REGISTERS)
def test_only_registers_that_are_there_are_used(level: str) -> None:
    assembly = _run(ASSEMBLY, level)
    used, unused = REGISTERS[level]
    assert used in assembly
    assert unused not in assembly

"""The kit's kernels by way of C: run on the host's device, with their own references, and compiled as OpenCL C by Clang."""

from __future__ import annotations

from pathlib import Path

import pytest
from opencl_clang import Seen, compile_opencl
from triton.runtime import driver

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.attention import AttentionTiles
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

CASES = [
    cases.vector_add_case(1823, "float32"),
    cases.softmax_case(17, 781, "float16"),
    cases.matmul_case(17, 33, 65, "float32"),
    cases.matmul_case(33, 17, 65, "bfloat16", leaky_relu=True),
    cases.matmul_case(17, 33, 65, "int8"),
    cases.giou_case(3, 17, "float32"),
    cases.layer_norm_case(5, 300, "float32"),
    cases.layer_norm_backward_case(5, 300, "float32"),
    cases.dropout_case(1823, "float32"),
    cases.gelu_residual_case(1823, "float32"),
    cases.cumulative_sum_case(3, 200, "float32"),
    cases.sort_rows_case(3, 50, "float32"),
    cases.attention_case(1, 128, 16, "float32", tiles=AttentionTiles(32, 32)),
]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_kernel(case: Case, through_c: Seen, cpu_backend: None, tmp_path: Path) -> None:
    through_c.clear()
    for deviation in case.check(DevicePlace(driver.active.device)):
        assert deviation.ok, deviation
    assert through_c.texts
    assert not through_c.refusals
    compile_opencl(through_c.texts, tmp_path)
    assert all("__kernel void tpk_" in text for text in through_c.texts)

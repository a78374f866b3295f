"""A case tells right results from wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.tolerances import ARITHMETIC, ROUNDING, tolerance

CASE = cases.matmul_case(20, 30, 40, "float32")


def deviation_of(change: float) -> cases.Deviation:
    operands = CASE.operands()
    result = CASE.reference(*(operand.values for operand in operands))
    result[3, 4] += change
    return CASE.compare([result], operands)[0]


def test_exact_results_pass() -> None:
    assert (deviation_of(0.0).ok, deviation_of(0.0).max_error) == (True, 0.0)


@pytest.mark.parametrize("change", [1e-3, np.nan, np.inf], ids=str)
def test_one_wrong_element_fails(change: float) -> None:
    deviation = deviation_of(change)
    assert not deviation.ok
    assert deviation.severity > 1


def test_another_shape_fails() -> None:
    operands = CASE.operands()
    assert not CASE.compare([np.zeros((20, 1))], operands)[0].ok


def test_names_of_cases_say_what_is_special() -> None:
    assert CASE.id == "matmul-20x30x40-float32"
    assert cases.matmul_case(1, 2, 3, "float16", leaky_relu=True, tiles=None).id.endswith("-leaky_relu-tuned")


def test_inputs_are_representable_in_their_type() -> None:
    for operand in cases.giou_case(4, 17, "float16").operands()[:2]:
        np.testing.assert_array_equal(operand.values.astype(np.float16), operand.values)


def test_one_sample_has_no_valid_box() -> None:
    valid = cases.giou_case(4, 17, "float32").operands()[2].values
    assert (~valid.any(axis=1)).sum() == 1


@pytest.mark.parametrize("kernel", ARITHMETIC)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_every_tolerance_has_a_reason_and_allows_one_rounding(kernel: str, dtype: str) -> None:
    allowed = tolerance(kernel, dtype)
    assert allowed.reason
    assert ROUNDING[dtype].rtol <= allowed.rtol < 2**-7

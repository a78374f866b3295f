"""All kernels end to end on device arrays, without torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.arrays import dtype_name
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.dropout import dropout
from triton_porting_kit.kernels.matmul import DEFAULT_TILES, matmul
from triton_porting_kit.kernels.places import DevicePlace, Operand, round_to
from triton_porting_kit.kernels.softmax import softmax
from triton_porting_kit.kernels.vector_add import vector_add


def test_result_matches_reference(case: Case, device_place: DevicePlace, check: Any) -> None:
    check(case, device_place)


@pytest.mark.parametrize("shift", [0, 1], ids=["aligned", "unaligned"])
def test_nothing_outside_the_arrays_is_touched(
    guarded_case: Case, device_place: DevicePlace, check_guarded: Any, shift: int
) -> None:
    check_guarded(guarded_case, device_place, shift)


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
def test_matmul_takes_transposed_views(device_place: DevicePlace, transposed: str) -> None:
    case = cases.matmul_case(50, 70, 60, "float32")
    operands = case.operands()
    views: list[Any] = []
    for name, operand in zip("ab", operands, strict=True):
        flip = name in transposed
        array: Any = device_place.put(Operand(operand.values.T, operand.dtype) if flip else operand)
        views.append(array.T if flip else array)
    (deviation,) = case.compare([device_place.get(matmul(*views, tiles=DEFAULT_TILES))], operands)
    assert deviation.ok, deviation


def test_results_repeat_bit_for_bit(device_place: DevicePlace) -> None:
    case = cases.layer_norm_backward_case(781, 17, "float32")
    arrays = [device_place.put(operand) for operand in case.operands()]
    first, second = ([device_place.get(array) for array in case.launch(arrays)] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_output_has_the_type_of_the_input(device_place: DevicePlace) -> None:
    x = device_place.put(round_to(np.ones((2, 3)), "bfloat16"))
    out = softmax(x)
    assert (dtype_name(out), tuple(out.shape)) == ("bfloat16", (2, 3))


def test_given_output_is_used_and_returned(device_place: DevicePlace) -> None:
    x, out = (device_place.put(Operand(np.full(5, value), "float32")) for value in (2.0, 0.0))
    assert vector_add(x, x, out=out) is out
    np.testing.assert_array_equal(device_place.get(out), np.full(5, 4.0))


def test_empty_arrays_give_empty_results(device_place: DevicePlace) -> None:
    x = device_place.put(Operand(np.zeros(0), "float32"))
    assert tuple(vector_add(x, x).shape) == (0,)


def test_dropout_drops_the_same_positions_for_every_type(device_place: DevicePlace) -> None:
    masks = [
        device_place.get(dropout(device_place.put(Operand(np.ones(1823), dtype)), 0.5, 7)) != 0
        for dtype in ("float32", "float16", "bfloat16")
    ]
    assert (masks[0] == masks[1]).all()
    assert (masks[0] == masks[2]).all()
    assert 0.45 < masks[0].mean() < 0.55


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
from triton.runtime import driver
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.matmul import DEFAULT_TILES, matmul
from triton_porting_kit.kernels.places import DevicePlace
place = DevicePlace(driver.active.device)
for case in (cases.vector_add_case(17, "float32"), cases.matmul_case(17, 17, 17, "bfloat16", tiles=None)):
    assert all(deviation.ok for deviation in case.check(place)), case.id
"""


def test_kernels_and_tuning_need_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

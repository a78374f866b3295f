"""The cases that kernels are tested on, and places whose arrays lie between guard zones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from triton_porting_kit.kernels import (
    attention,
    cases,
    dropout,
    gelu,
    giou,
    layer_norm,
    matmul,
    rows,
    softmax,
    vector_add,
)
from triton_porting_kit.kernels.arrays import dtype_name
from triton_porting_kit.kernels.attention import AttentionTiles
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace, Operand, Place

DTYPES = ("float32", "float16", "bfloat16")
LENGTHS = (1, 17, 781, 1823, 4096, 65536)
MATRICES = ((1, 1), (17, 781), (781, 17), (5, 1823), (64, 1024))
PRODUCTS = ((1, 1, 1), (17, 17, 17), (128, 128, 128), (17, 781, 33), (781, 17, 1823), (256, 192, 320))
BOXES = ((1, 1), (3, 17), (17, 781), (4, 1823), (8, 256))

CASES = [
    case
    for dtype in DTYPES
    for case in (
        *(cases.vector_add_case(n, dtype) for n in LENGTHS),
        *(cases.softmax_case(*shape, dtype) for shape in MATRICES),
        *(cases.matmul_case(*shape, dtype) for shape in PRODUCTS),
        cases.matmul_case(100, 90, 80, dtype, leaky_relu=True),
        cases.matmul_case(100, 90, 80, dtype, tiles=None),
        *(cases.matmul_case(129, 130, 131, dtype, tiles=tiles) for tiles in matmul.TUNED_TILES[2:]),
        *(cases.giou_case(*shape, dtype) for shape in BOXES),
        *(cases.layer_norm_case(*shape, dtype) for shape in MATRICES),
        *(cases.layer_norm_backward_case(*shape, dtype) for shape in MATRICES),
        *(cases.dropout_case(n, dtype) for n in LENGTHS[:-1]),
        *(cases.gelu_residual_case(n, dtype) for n in (1, 1823)),
        *(cases.cumulative_sum_case(*shape, dtype) for shape in ((1, 1), (17, 781))),
        *(cases.sort_rows_case(*shape, dtype) for shape in ((1, 1), (17, 200))),
        cases.attention_case(2, 256, 32, dtype, tiles=AttentionTiles(64, 32)),
        cases.attention_backward_case(2, 256, 32, dtype, tiles=AttentionTiles(64, 32)),
        cases.attention_backward_case(2, 256, 32, dtype, tiles=AttentionTiles(64, 32), atomic=True),
    )
] + [
    cases.dropout_case(1823, "float32", p, seed)
    for p, seed in ((0.0, 3), (1.0, 3), (0.5, 0), (0.5, 1), (0.5, -3), (0.9, 2**31 + 11), (0.1, 2**40 + 7))
]
CASES += [cases.matmul_case(*shape, "int8") for shape in PRODUCTS[:5]]

GUARDED_CASES = [
    case
    for dtype in ("float32", "bfloat16")
    for case in (
        cases.vector_add_case(1823, dtype),
        cases.softmax_case(17, 781, dtype),
        cases.matmul_case(17, 781, 33, dtype),
        cases.giou_case(3, 781, dtype),
        cases.layer_norm_case(17, 781, dtype),
        cases.layer_norm_backward_case(17, 781, dtype),
        cases.dropout_case(1823, dtype),
        cases.gelu_residual_case(1823, dtype),
        cases.cumulative_sum_case(17, 781, dtype),
        cases.sort_rows_case(17, 200, dtype),
        cases.attention_case(2, 128, 32, dtype, tiles=AttentionTiles(32, 64)),
        cases.attention_backward_case(2, 128, 32, dtype, tiles=AttentionTiles(32, 64)),
        cases.attention_backward_case(2, 128, 32, dtype, tiles=AttentionTiles(32, 64), atomic=True),
    )
]

GUARD = 64
#: Poison of outputs. Inputs have NaN around them: one that is read shows in the result.
PATTERN = -77.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `case` and `guarded_case` their values, with readable names."""
    for name, values in (("case", CASES), ("guarded_case", GUARDED_CASES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values, ids=[case.id for case in values])


@pytest.fixture(scope="session", autouse=True)
def _on_the_cpu(cpu_backend: None) -> None:
    """Every test here runs on the CPU backend."""


@pytest.fixture(scope="session")
def device_place(cpu_backend: None) -> DevicePlace:
    """Device arrays on the active driver's device."""
    from triton.runtime import driver

    return DevicePlace(driver.active.device)


class GuardedPlace:
    """Puts arrays into the middle of larger ones, `shift` elements off their alignment."""

    def __init__(self, place: Place, shift: int) -> None:
        self.place, self.offset = place, GUARD + shift
        self.zones: list[tuple[Any, int, np.ndarray, bool]] = []
        self.windows: dict[int, tuple[Any, Any, int]] = {}

    def _allocate(self, shape: Sequence[int], dtype: str, poison: float, values: Any = None) -> Any:
        count = math.prod(shape)
        whole = np.full(count + 2 * GUARD + 1, bool(poison) if dtype == "bool" else poison)
        if values is not None:
            whole[self.offset : self.offset + count] = values.ravel()
        flat: Any = self.place.put(Operand(whole, dtype))
        self.zones.append((flat, count, whole, values is not None))
        window: Any = flat[self.offset : self.offset + count].reshape(tuple(shape))
        # Keeps the window alive: its id must stay its own.
        self.windows[id(window)] = (window, flat, count)
        return window

    def put(self, operand: Operand) -> Any:
        """An input between NaNs."""
        return self._allocate(operand.values.shape, operand.dtype, np.nan, operand.values)

    def empty(self, shape: Sequence[int], like: Any, dtype: str | None = None) -> Any:
        """An output between, and full of, poison; stands in for `arrays.empty`."""
        return self._allocate(shape, dtype or dtype_name(like), PATTERN)

    def get(self, window: Any) -> Any:
        """The values of a window."""
        _, flat, count = self.windows[id(window)]
        return self.place.get(flat)[self.offset : self.offset + count].reshape(tuple(window.shape))

    def synchronize(self) -> None:
        """Wait for what was launched."""
        self.place.synchronize()

    def assert_intact(self) -> None:
        """No kernel wrote beside its outputs, or to an input."""
        for flat, count, before, is_input in self.zones:
            now, before = self.place.get(flat), before.astype(np.float64)
            if is_input:
                np.testing.assert_array_equal(now, before, "an input was written to")
            for zone in (slice(self.offset), slice(self.offset + count, None)):
                np.testing.assert_array_equal(now[zone], before[zone], "written beside an output")


def assert_within_tolerance(case: Case, place: Place) -> None:
    """Run a case; every result must be as near its reference as its tolerance says."""
    for deviation in case.check(place):
        assert deviation.ok, (
            f"{deviation.name}: off by {deviation.max_error:.3e}, "
            f"{deviation.severity:.2f} times what is allowed ("
            f"{deviation.tolerance}: {deviation.tolerance.reason})"
        )


@pytest.fixture
def check() -> Any:
    """`check(case, place)`: run a case and compare with its reference."""
    return assert_within_tolerance


@pytest.fixture
def check_guarded(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`check_guarded(case, place, shift)`: the same with every array guarded, outputs included."""

    def run(case: Case, place: Place, shift: int) -> None:
        guarded = GuardedPlace(place, shift)
        for module in (vector_add, softmax, matmul, giou, layer_norm, dropout, gelu, rows, attention):
            monkeypatch.setattr(module, "empty", guarded.empty)
        assert_within_tolerance(case, guarded)
        guarded.assert_intact()

    return run

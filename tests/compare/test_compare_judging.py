"""What is called wrong: recorded launches of a right backend, and the same with other results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_helpers import PROGRAMS

from triton_porting_kit.compare.judging import Judgement, Status, judge
from triton_porting_kit.compare.reference import Kernels, Variation, variations
from triton_porting_kit.replay import Capture, read
from triton_porting_kit.replay.manifest import StoredFile

pytestmark = pytest.mark.xdist_group("compare")  # recorded programs are shared


@pytest.fixture(scope="module")
def captures(cpu_backend: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Capture]:
    """A recorded launch of each kernel."""
    folder = tmp_path_factory.mktemp("recorded") / "launches"
    environment = {**os.environ, "TPK_CAPTURE": str(folder)}
    subprocess.run([sys.executable, str(PROGRAMS), "one_of_each"], env=environment, check=True)
    return {path.name.partition("-")[2]: read(path) for path in sorted(folder.glob("[0-9]*"))}


@pytest.fixture(scope="module")
def kernels(cpu_backend: None) -> Kernels:
    return Kernels()


def content(capture: Capture, name: str, dtype: Any, when: str = "after") -> Any:
    (buffer,) = (buffer for buffer in capture.manifest.buffers if name in buffer.names)
    return np.frombuffer(capture.content(getattr(buffer, when)), dtype).copy()


def with_result(capture: Capture, name: str, values: Any) -> Capture:
    """The same launch, had it left other values."""
    file = StoredFile(f"{name}.bin", values.nbytes, "0" * 64)
    buffers = [
        replace(buffer, after=file) if name in buffer.names else buffer for buffer in capture.manifest.buffers
    ]
    contents = {**capture.contents, file.file: values.tobytes()}
    return replace(capture, manifest=replace(capture.manifest, buffers=buffers), contents=contents)


def judged(capture: Capture, kernels: Kernels, name: str, values: Any) -> Judgement:
    return judge(with_result(capture, name, values), kernels)


@pytest.mark.parametrize(
    "kernel",
    ["add", "increment", "softmax", "waves", "copy", "product", "total", "tickets", "quantise", "undefined"],
)
def test_what_the_reference_itself_did_agrees(
    kernel: str, captures: dict[str, Capture], kernels: Kernels
) -> None:
    found = judge(captures[kernel], kernels)
    # Which program gets which ticket may change from run to run.
    assert found.status is Status.AGREES or (kernel == "tickets" and found.status is Status.UNDECIDED)


@pytest.mark.parametrize(("units", "status"), [(2, Status.AGREES), (2000, Status.DIFFERS)])
def test_roundings_are_allowed(
    units: int, status: Status, captures: dict[str, Capture], kernels: Kernels
) -> None:
    values = content(captures["softmax"], "out_ptr", np.float32)
    values.view(np.int32)[17] += units
    found = judged(captures["softmax"], kernels, "out_ptr", values)
    assert found.status is status
    if found.arrays:
        (array,) = found.arrays
        assert (array.name, array.wrong, array.total, array.first, array.last) == ("out_ptr", 1, 700, 17, 17)
        exact = np.exp(content(captures["softmax"], "x_ptr", np.float32, "before").astype(np.float64)[:100])
        assert float(array.elements[0].float64) == pytest.approx((exact / exact.sum())[17], rel=1e-7)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_other_numbers_are_not(value: float, captures: dict[str, Capture], kernels: Kernels) -> None:
    values = content(captures["product"], "c_ptr", np.uint16)
    values[3] = np.array([value], np.float32).view(np.uint32)[0] >> 16
    assert judged(captures["product"], kernels, "c_ptr", values).status is Status.DIFFERS


def test_what_is_only_moved_or_counted_is_exact(captures: dict[str, Capture], kernels: Kernels) -> None:
    for kernel, name, dtype in (("copy", "out_ptr", np.int32), ("increment", "x_ptr", np.int32)):
        values = content(captures[kernel], name, dtype)
        values[5] += 1
        found = judged(captures[kernel], kernels, name, values)
        assert found.status is Status.DIFFERS
        assert found.arrays[0].elements[0].allowed == ""


def test_sums_that_are_exact_have_no_room(captures: dict[str, Capture], kernels: Kernels) -> None:
    """Of whole numbers."""
    capture = captures["add"]
    files = {}
    for name, step in (("x_ptr", 1), ("y_ptr", 2)):
        files[name] = (np.arange(700) * step).astype(np.float32)
    result = files["x_ptr"] + files["y_ptr"]
    for name, values in files.items():
        capture = with_result(capture, name, values)
    buffers = [
        replace(buffer, before=buffer.after or buffer.before) if "out_ptr" not in buffer.names else buffer
        for buffer in capture.manifest.buffers
    ]
    capture = replace(capture, manifest=replace(capture.manifest, buffers=buffers))
    assert judged(capture, kernels, "out_ptr", result).status is Status.AGREES
    result[9] = np.nextafter(result[9], np.float32(np.inf))
    assert judged(capture, kernels, "out_ptr", result).status is Status.DIFFERS


def test_a_number_that_a_rounding_decides_is_not_called_wrong(
    captures: dict[str, Capture], kernels: Kernels
) -> None:
    """Truncated to an integer next to one: x / 0.3 * 10 is 1 or the number before."""
    capture = captures["quantise"]
    x = np.full(256, 0.03, np.float32)
    capture = with_result(capture, "x_ptr", x)
    buffers = [
        replace(buffer, before=buffer.after or buffer.before) if "x_ptr" in buffer.names else buffer
        for buffer in capture.manifest.buffers
    ]
    capture = replace(capture, manifest=replace(capture.manifest, buffers=buffers))
    for value, statuses in (
        (0, {Status.AGREES}),
        (1, {Status.AGREES}),
        (2, {Status.UNDECIDED, Status.DIFFERS}),
    ):
        assert judged(capture, kernels, "out_ptr", np.full(256, value, np.int8)).status in statuses, value
    values = content(captures["quantise"], "out_ptr", np.int8)
    values[np.abs(values) < 100] += 2
    assert judged(captures["quantise"], kernels, "out_ptr", values).status is Status.DIFFERS


def test_results_that_are_not_defined_may_be_any(captures: dict[str, Capture], kernels: Kernels) -> None:
    """Numbers that the type does not hold, and quotients by 0."""
    capture = captures["undefined"]
    values = content(capture, "out_ptr", np.int8)
    for index in (2, 7, 8, 12):  # 200, 700, 0 // 0, 4 // 0
        values[index] ^= 0x55
    found = judged(capture, kernels, "out_ptr", values)
    assert (found.status, found.undecided) == (Status.UNDECIDED, 4)
    for index in (1, 13):  # 100, 5 // 1
        changed = values.copy()
        changed[index] += 1
        found = judged(capture, kernels, "out_ptr", changed)
        assert found.status is Status.DIFFERS
        assert [element.index for element in found.arrays[0].elements] == [index]


def test_sums_in_any_order_are_allowed(captures: dict[str, Capture], kernels: Kernels) -> None:
    x = content(captures["total"], "x_ptr", np.float32, "before")
    for order in (np.arange(1024), np.random.default_rng(1).permutation(1024)):
        total = np.float32(0)
        for value in x[order]:
            total += value
        assert judged(captures["total"], kernels, "sum_ptr", np.array([total])).status is Status.AGREES
    without_one = np.array([x[np.abs(x) < 2].sum(dtype=np.float32)])
    assert judged(captures["total"], kernels, "sum_ptr", without_one).status is Status.DIFFERS


def test_where_the_order_of_programs_decides_nothing_is_called_wrong(
    captures: dict[str, Capture], kernels: Kernels
) -> None:
    found = judged(captures["tickets"], kernels, "out_ptr", np.arange(8, dtype=np.int32)[::-1].copy())
    assert found.status is Status.UNDECIDED
    assert found.reason == "it uses what atomic operations found in memory: their order may decide"


def test_what_cannot_be_compared_says_why(
    captures: dict[str, Capture], kernels: Kernels, tmp_path: Path
) -> None:
    capture = captures["add"]
    manifest = capture.manifest
    for changed, reason in (
        ({"unresolved": [{"name": "x_ptr", "why": "nobody knows"}]}, "the memory of 'x_ptr' is not recorded"),
        ({"notes": ["the integer 'n' is an address"]}, "the integer 'n' is an address"),
        ({"kernel": replace(manifest.kernel, source=None)}, "Triton did not keep the kernel's IR"),
    ):
        found = judge(replace(capture, manifest=replace(manifest, **changed)), kernels)
        assert found.status is Status.NOT_COMPARED
        assert reason in found.reason
    launch = Path(shutil.copytree(capture.folder, tmp_path / "launch"))
    assert read(launch).manifest.kernel.source is not None


def test_float64_and_roundings_against_numpy(captures: dict[str, Capture], kernels: Kernels) -> None:
    """Without roundings, what NumPy computes in float64; with them, near it and not the same."""
    capture = captures["softmax"]
    kernel = kernels.of(capture)
    number = next(n for n, buffer in enumerate(capture.manifest.buffers) if "out_ptr" in buffer.names)
    x = content(capture, "x_ptr", np.float32, "before").astype(np.float64).reshape(7, 100)
    weights = np.exp(x - x.max(1, keepdims=True))
    expected = (weights / weights.sum(1, keepdims=True)).ravel()

    def left(variation: Variation) -> Any:
        return kernel.run(capture, variation)[number].view(np.float32).astype(np.float64)

    exact = left(Variation())
    assert np.array_equal(exact.astype(np.float32), expected.astype(np.float32))
    runs = np.array([left(variation) for variation in variations(8)])
    off = np.abs(runs - exact).max(0) / exact
    assert (off > 2.0**-25).all()
    assert (off < 2.0**-16).all()
    assert not np.array_equal(runs[0], runs[2])

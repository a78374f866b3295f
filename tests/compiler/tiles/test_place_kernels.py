"""Plans of the kit's kernels are hardly larger than what is in use at one time, which is counted from the text here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import triton
from chip_backend import VirtualChip, running_on

from triton_porting_kit.kernels import attention, cases, layer_norm, matmul, softmax, vector_add
from triton_porting_kit.kernels.attention import AttentionTiles
from triton_porting_kit.kernels.matmul import Tiles
from triton_porting_kit.kernels.places import DevicePlace

ALLOWED = 1.15
"""How many times as large as the largest sum of live bytes a plan may be."""

CASES = [
    cases.vector_add_case(65536, "float32"),
    cases.softmax_case(17, 781, "float32"),
    cases.softmax_case(17, 4096, "float16"),
    cases.matmul_case(256, 192, 320, "float16"),
    cases.matmul_case(129, 130, 131, "float16", tiles=Tiles(128, 128, 32)),
    cases.matmul_case(100, 90, 80, "float32", leaky_relu=True),
    cases.matmul_case(128, 128, 128, "int8"),
    cases.giou_case(17, 781, "float32"),
    cases.layer_norm_case(64, 1024, "float32"),
    cases.layer_norm_backward_case(64, 1024, "float32"),
    cases.dropout_case(4096, "float32"),
    cases.gelu_residual_case(1823, "float16"),
    cases.cumulative_sum_case(17, 781, "float32"),
    cases.sort_rows_case(17, 200, "float32"),
    cases.attention_case(2, 256, 32, "float16", tiles=AttentionTiles(64, 32)),
    cases.attention_case(2, 256, 64, "float16", tiles=AttentionTiles(64, 128)),
    cases.attention_backward_case(2, 256, 32, "float16", tiles=AttentionTiles(64, 32)),
]


MODULES = (attention, layer_norm, matmul, softmax, vector_add)
OTHERS = [case for case in CASES if case.kernel.startswith(("softmax", "matmul", "layer_norm", "attention"))]
"""The cases that are planned for all chips."""


@pytest.fixture(scope="module")
def chip(request: pytest.FixtureRequest) -> Iterator[tuple[VirtualChip, list[str]]]:
    """A chip, and the placed texts of what is compiled for it."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    for module in MODULES:  # what was compiled for the last chip
        for kernel in vars(module).values():
            if isinstance(kernel, triton.JITFunction):
                kernel.device_caches.clear()
    with running_on(request.param, note) as device:
        yield device, texts


BUFFER = re.compile(
    r'(%\w+) = "tpk\.npu_buffer"\(\) \{address = (\d+) : i64, bytes = (\d+) : i64, (?:copies = (\d+) : i64, )?.*?'
    r'memory = "(\w+)"'
)
RESULT = re.compile(r"^\s*(%\w+)(?::\d+)? = ")
AT_ONCE = ("scf.", '"tpk.reduce"', '"tpk.npu_write"', '"tpk.npu_wait"', '"tpk.npu_order"', "yield")
"""Operations whose results are not computed from a buffer later than where they stand."""


def plans(text: str) -> Iterator[tuple[str, int, int]]:
    """For each memory of a placed kernel: its name, the bytes up to the end of its last buffer, and the largest sum of
    bytes that are in use at one line. A buffer is in use from its line to the last one with something computed from it;
    what is made outside of a loop, to the end of the loop.
    """
    lines = text.split("\n")
    depths: list[int] = []
    depth = 0
    for line in lines:
        code = re.sub(r'"[^"]*"', "", line.partition(" loc(")[0])
        closes = code.lstrip().startswith("}")
        depths.append(depth - 1 if closes else depth)
        depth += code.count("{") - code.count("}")
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    for first, line in enumerate(lines):
        match = BUFFER.search(line)
        if match is None:
            continue
        name, address, size, copies, memory = match.groups()
        last = _last_use(lines, depths, first, name)
        whole = int(size) * int(copies or 1)
        found.setdefault(memory, []).append((first, last, int(address) + whole, whole))
    for memory, buffers in found.items():
        moments = {first for first, *_ in buffers}
        live = max(sum(size for first, last, _, size in buffers if first <= at <= last) for at in moments)
        yield memory, max(end for _, _, end, _ in buffers), live


def _last_use(lines: list[str], depths: list[int], first: int, name: str) -> int:
    names, last = {name}, first
    for number in range(first + 1, len(lines)):
        used = names & set(re.findall(r"%\w+", lines[number].partition(" loc(")[0].split("=", 1)[-1]))
        if used:
            last = number
            result = RESULT.match(lines[number])
            if result and not any(word in lines[number] for word in AT_ONCE):
                names.add(result[1])
        if depths[number] < depths[first]:
            break
    if depths[last] > depths[first]:
        last = next(n for n in range(last, len(lines)) if depths[n] <= depths[first])
    return last


@pytest.mark.parametrize(
    ("chip", "case"),
    [
        *(pytest.param("n1", case, id=f"n1-{case.id}") for case in CASES),
        *(
            pytest.param(chip, case, id=f"{chip}-{case.id}")
            for chip in ("ascend910b", "single")
            for case in OTHERS
        ),
    ],
    indirect=["chip"],
)
def test_plans_are_small(chip: tuple[VirtualChip, list[str]], case: cases.Case) -> None:
    device, texts = chip
    texts.clear()
    deviations = case.check(DevicePlace(device))
    assert all(deviation.ok for deviation in deviations), deviations
    for text in texts:
        for memory, used, live in plans(text):
            assert used <= ALLOWED * live, (memory, used, live)


def test_live_bytes_are_counted() -> None:
    text = """
  func.func public @k(%arg0: !llvm.ptr) {
    %0 = "tpk.npu_buffer"() {address = 0 : i64, bytes = 100 : i64, copies = 2 : i64, holds = "load", memory = "vector"} : () -> !llvm.ptr
    %1 = scf.for %arg1 = %a to %b step %c -> (i64) : i64 {
      %2 = "tpk.npu_buffer"() {address = 256 : i64, bytes = 64 : i64, holds = "load", memory = "vector"} : () -> !llvm.ptr
      %3 = "tpk.npu_read"(%2) : (!llvm.ptr) -> tensor<16xf32>
      %4 = "tpk.npu_buffer"() {address = 320 : i64, bytes = 64 : i64, holds = "load", memory = "vector"} : () -> !llvm.ptr
      "tpk.npu_write"(%4, %3) : (!llvm.ptr, tensor<16xf32>) -> ()
      %5 = "tpk.npu_buffer"() {address = 256 : i64, bytes = 64 : i64, holds = "load", memory = "vector"} : () -> !llvm.ptr
      "tpk.npu_write"(%0, %5) : (!llvm.ptr, tensor<16xf32>) -> ()
    }
    return
"""
    assert list(plans(text)) == [("vector", 384, 200 + 64 + 64)]

"""Kernels on a chip with on-chip memory: what units compute and move, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from npus import ADD, KERNELS, Npu, build, statements

from triton_porting_kit.abi import npu
from triton_porting_kit.abi.elements import ELEMENTS
from triton_porting_kit.chips import CHIPS, load

N1 = load("n1")


@pytest.fixture(scope="module")
def chip() -> Iterator[Npu]:
    with Npu(N1) as opened:
        yield opened


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("kernels"), KERNELS.read_text(), N1)


def test_the_description_decides_on_cores_and_scratchpads(chip: Npu) -> None:
    config = chip.config()
    assert (config.cores, config.scratchpad_bytes) == (8, N1.window_bytes)
    assert config.description.decode() == N1.text


@pytest.mark.parametrize("count", [1, 1000, 1024, 1 << 15, 30001])
def test_vector_add(chip: Npu, kernels: bytes, count: int) -> None:
    generator = np.random.default_rng(count)
    x, y = (generator.standard_normal(count, dtype=np.float32) for _ in range(2))
    guarded = np.full(count + 16, 99, np.float32)
    out = chip.put(guarded)
    chip.launch_kernel(kernels, "add", -(-count // 1024), chip.put(x), chip.put(y), out, count)
    result = chip.get(out, guarded)
    np.testing.assert_array_equal(result[:count], x + y)
    np.testing.assert_array_equal(result[count:], 99)


@pytest.mark.parametrize("name", CHIPS)
def test_vector_add_on_every_chip(name: str, tmp_path: Path) -> None:
    description = load(name)
    x = np.arange(50000, dtype=np.float32)
    with Npu(description) as other:
        out = other.put(np.zeros_like(x))
        binary = build(tmp_path, ADD, description)
        other.launch_kernel(binary, "add", 49, other.put(x), other.put(x), out, len(x))
        np.testing.assert_array_equal(other.get(out, x), 2 * x)
        assert other.config().cores == description.cores


def test_work_and_copies_of_other_queues_go_on_together(chip: Npu, kernels: bytes) -> None:
    x = np.arange(5000, dtype=np.float32)
    address, queues = chip.put(x), [chip.queue() for _ in range(3)]
    outs = [chip.put(x) for _ in queues]
    for _ in range(5):
        for queue, out in zip(queues, outs, strict=True):
            chip.launch_kernel(kernels, "add", 5, address, address, out, 5000, queue=queue)
    for queue, out in zip(queues, outs, strict=True):
        result = np.frombuffer(chip.read(out, x.nbytes, queue), np.float32)
        np.testing.assert_array_equal(result, 2 * x)
        chip.queue_destroy(queue)


def _patterns(name: str, count: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Random elements of a type: their bits, and their values as float64."""
    generator = np.random.default_rng(seed)
    form = ELEMENTS[name].form
    if form is None:
        bits = generator.integers(0, 256, count, np.uint8)
        return bits, bits.view(np.int8 if name == "i8" else np.uint8).astype(np.float64)
    if name == "fp32":
        values = generator.standard_normal(count, dtype=np.float32)
        return values.view(np.uint32), values.astype(np.float64)
    finite = np.array(
        [value for value in range(1 << ELEMENTS[name].bits) if abs(form.value(value)) < 8], np.uint32
    )
    bits = finite[generator.integers(0, len(finite), count)]
    kind = np.uint8 if ELEMENTS[name].bits == 8 else np.uint16
    return bits.astype(kind), np.array([form.value(int(pattern)) for pattern in bits])


@pytest.mark.parametrize("transposed", [(), ("a",), ("b",), ("a", "b")])
@pytest.mark.parametrize(
    ("name", "sums"),
    [
        *((name, "fp32") for name in ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")),
        ("i8", "i32"),
        ("u8", "i32"),
    ],
)
def test_products(chip: Npu, kernels: bytes, name: str, sums: str, transposed: tuple[str, ...]) -> None:
    """Each sum is exact, or within the rounding of its 64 additions in float32."""
    m, n, k = 48, 32, 64
    a_bits, a = _patterns(name, m * k, 1)
    b_bits, b = _patterns(name, k * n, 2)
    a = a.reshape(k, m).T if "a" in transposed else a.reshape(m, k)
    b = b.reshape(n, k).T if "b" in transposed else b.reshape(k, n)
    start = np.arange(m * n).reshape(m, n).astype(np.int32 if sums == "i32" else np.float32)
    flags = sum(npu.FLAGS[f"transposed_{each}"] for each in transposed)
    for accumulate in (0, npu.FLAGS["accumulate"]):
        out = chip.put(start)
        types = (npu.TYPES[name], npu.TYPES[sums], flags | accumulate)
        chip.launch_kernel(kernels, "multiply", 1, chip.put(a_bits), chip.put(b_bits), out, *types)
        result = chip.get(out, start)
        before = start.astype(np.float64) * bool(accumulate)
        exact = before + a @ b
        bound = (before + np.abs(a) @ np.abs(b)) * 66 * 2.0**-24 if sums == "fp32" else 0
        assert (np.abs(result - exact) <= bound).all()


def test_gathers_and_scatters(chip: Npu, kernels: bytes) -> None:
    n = 160
    generator = np.random.default_rng(3)
    table = generator.integers(0, 1 << 30, n, np.int32)
    offsets, mask = generator.permutation(n).astype(np.int32), generator.integers(0, 2, n, np.uint8)
    out = chip.put(np.zeros(n, np.int32))
    # Negative offsets count from the base.
    addresses = (chip.put(table) + 4 * n // 2, chip.put(offsets - n // 2), chip.put(mask))
    chip.launch_kernel(kernels, "collect", 1, out, *addresses, n, 0)
    np.testing.assert_array_equal(chip.get(out, table), np.where(mask, table[offsets], 7))

    out = chip.put(np.zeros(n, np.int32))
    addresses = (chip.put(table), chip.put(offsets - n // 2), chip.put(mask))
    chip.launch_kernel(kernels, "collect", 1, out + 4 * n // 2, *addresses, n, 1)
    expected = np.zeros(n, np.int32)
    expected[offsets[mask != 0]] = table[mask != 0]
    np.testing.assert_array_equal(chip.get(out, table), expected)


def test_poisoned_memories_show_what_was_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "row(0, y, vector + 4096, 64, 1); row(0, vector + 4096, x, 64, 2); row(0, y + 64, vector + 4096, 64, 3);"
    monkeypatch.setenv("VNPU_POISON", "1")
    with Npu(N1) as other:
        binary = statements(tmp_path, body, N1)
        x = np.arange(16, dtype=np.float32)
        for _ in range(2):
            out = other.put(np.zeros(32, np.float32))
            other.launch_kernel(binary, "kernel", 1, other.put(x), out)
            result = other.get(out, np.zeros(32, np.float32))
            assert np.isnan(result[:16]).all()
            np.testing.assert_array_equal(result[16:], x)


@pytest.mark.parametrize("whole", [0, 1])
def test_boxes_of_five_dimensions(chip: Npu, kernels: bytes, whole: int) -> None:
    """A box of a tile comes in from reversed dimensions, the rest is filled; the box or all of it goes out."""
    shape = (2, 3, 4, 5, 6)
    source = np.arange(720).astype(np.uint8)
    tile = source.reshape(shape[::-1]).transpose(4, 3, 2, 1, 0)[:, :, ::-1]
    box = (slice(0, 2), slice(1, 3), slice(0, 4), slice(1, 4), slice(0, 5))
    local = np.full(shape, 0xEE if whole else 0, np.uint8)
    local[box] = tile[box]
    out = chip.put(np.zeros(720, np.uint8))
    chip.launch_kernel(kernels, "boxes", 1, out, chip.put(source), whole)
    np.testing.assert_array_equal(chip.get(out, source), local.reshape(-1))


@pytest.mark.parametrize(
    ("kind", "name", "start", "value", "end"),
    [
        ("add", "i32", -5, 3, -5 + 3 * 100),
        ("add", "i16", 32767, 1, -32768 + 99),
        ("add", "u64", 2**64 - 1, 1, 99),
        ("add", "fp32", 0.5, 0.25, 25.5),
        ("add", "fp16", 1.0, 0.5, 51.0),
        ("add", "fp64", 1.0, 0.1, None),
        ("and", "i32", 0b1111, 0b1010, 0b1010),
        ("or", "u32", 1, 6, 7),
        ("xor", "i64", 5, 3, 5),
        ("max", "i8", -3, -2, -2),
        ("max", "u8", 3, 255, 255),
        ("min", "i32", 3, -2, -2),
        ("min", "fp32", 3.0, -2.5, -2.5),
        ("exchange", "i32", 1, 9, 9),
        ("compare", "i32", 4, 9, 9),
        ("compare", "i32", 5, 9, 5),
    ],
)
def test_atomics(
    chip: Npu, kernels: bytes, kind: str, name: str, start: float, value: float, end: float | None
) -> None:
    """100 programs on all cores do it once each; compare-and-exchange expects a 4."""
    kinds = {"fp": "f", "i": "i", "u": "u"}
    letter = kinds[name.rstrip("0123456789")]
    dtype = np.dtype(f"{letter}{ELEMENTS[name].size}")
    bits = np.zeros(8, np.uint8)
    bits[: dtype.itemsize] = np.array([value], dtype).view(np.uint8)
    values, results = chip.put(np.array([start, 77], dtype)), chip.put(np.zeros(100, np.int64))
    operands = (npu.ATOMICS[kind], npu.TYPES[name], int(bits.view(np.int64)[0]), 4)
    chip.launch_kernel(kernels, "counts", 100, values, results, *operands)
    found, guard = chip.get(values, np.zeros(2, dtype))
    assert guard == 77
    if end is None:
        total = dtype.type(start)
        for _ in range(100):
            total += dtype.type(value)
        end = float(total)
    assert found == dtype.type(end)
    before = chip.get(results, np.zeros(100, np.int64)).view(dtype)[:: 8 // dtype.itemsize]
    assert dtype.type(start) in before
    if kind == "add":
        assert len({*before.tolist()}) == 100


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_single_elements(chip: Npu, kernels: bytes, size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, 64 * size, np.uint8)
    target = chip.put(np.zeros_like(source))
    chip.launch_kernel(kernels, "moves", 64, chip.put(source), target, size)
    np.testing.assert_array_equal(chip.get(target, source), source)

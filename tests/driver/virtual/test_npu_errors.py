"""What the chip with on-chip memory does not allow: it ends the launch, says why, and goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from chips import Chip, Refused
from npus import HEAD, KERNELS, Npu, build, statements

from triton_porting_kit.chips import CHIPS, load
from triton_porting_kit.chips.files import parse

N1 = load("n1")
Fails = Callable[..., str]


@pytest.fixture(scope="module")
def chip() -> Iterator[Npu]:
    with Npu(N1, watchdog_ms=2000) as opened:
        yield opened


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("kernels"), KERNELS.read_text(), N1)


@pytest.fixture
def fails(chip: Npu, tmp_path: Path) -> Fails:
    """Runs the statements of a kernel with the pointers x and y, one program, and returns why it failed.

    ``@N`` stands for line N. The chip is alive afterwards.
    """

    def run(body: str, *, grid: int = 1) -> str:
        binary = statements(tmp_path, re.sub(r"@(\d+)", r"\1", body), N1)
        process = chip.process()
        x, y = chip.put(np.arange(4096, dtype=np.int32)), chip.put(np.zeros(4096, np.int32))
        chip.launch_kernel(binary, "kernel", grid, x, y)
        with pytest.raises(Refused) as info:
            chip.queue_synchronize(0)
        assert info.value.status == "LAUNCH_FAILED"
        assert chip.process() == process
        np.testing.assert_array_equal(chip.get(x, np.zeros(4096, np.int32)), np.arange(4096))
        return info.value.text

    return run


def test_core_code_has_no_access_to_global_memory(chip: Npu, kernels: bytes) -> None:
    process, x = chip.process(), chip.put(np.zeros(100, np.int32))
    for offset, place in (
        (12, "byte 12 of the allocation of 400 bytes at"),
        (400, "0 bytes behind the allocation"),
    ):
        chip.launch_kernel(kernels, "direct", 5, x, offset)
        with pytest.raises(Refused) as info:
            chip.queue_synchronize(0)
        assert info.value.status == "LAUNCH_FAILED"
        assert (
            "kernel 'direct', core 0, programs 0 to 0 of 5: core code accessed global memory, to which it has "
            in (info.value.text)
        )
        assert f"address {x + offset:#x}, {place}" in info.value.text
        assert "the last command before that is at line 1234" in info.value.text
    assert chip.process() == process


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        (N1.window["left"] + 5, "byte 5 of 'left', where it has no access"),
        (N1.window["vector"] + (512 << 10) + 8, "8 bytes behind the end of 'vector', which has 524288 bytes"),
        (N1.window["shared"], "byte 0 of 'shared'"),
        (N1.window_bytes - 1, "behind the end of 'shared'"),
    ],
)
def test_core_code_reaches_only_its_own_memories(chip: Npu, kernels: bytes, offset: int, place: str) -> None:
    process = chip.process()
    chip.launch_kernel(kernels, "reads_window", 1, offset)
    with pytest.raises(Refused) as info:
        chip.queue_synchronize(0)
    assert info.value.status == "LAUNCH_FAILED"
    assert place in info.value.text
    chip.launch_kernel(kernels, "reads_window", 100, N1.window["sums"] + (128 << 10) - 1)
    chip.queue_synchronize(0)
    assert chip.process() == process


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "row(0, vector, x, 1024, @5); tpk_npu_reads(vector + 1020, 8, @6);",
            "hazard: dma0's transfer 1 from global to vector at line 5 writes bytes 1020 to 1023 of 'vector', and "
            "the core's read at line 6 reads there without waiting for it",
        ),
        (
            "row(0, vector, x, 1024, @5); row(0, y, vector, 1024, @6); tpk_npu_writes(vector, 4, @7);",
            "dma0's transfer 2 from vector to global at line 6 reads bytes 0 to 3 of 'vector', and the core's write "
            "at line 7 writes",
        ),
        (
            "row(0, vector, x, 1024, @5); row(1, y, vector + 512, 1024, @6);",
            "dma0's transfer 1 from global to vector at line 5 writes bytes 512 to 1023 of 'vector', and dma1's "
            "transfer 1 from vector to global at line 6 reads there",
        ),
        (
            "row(0, left, x, 512, @5); row(1, right, x, 512, @6); tpk_npu_order(TPK_NPU_MATRIX, TPK_NPU_DMA, 1);"
            "tpk_npu_matrix(sums, left, right, 16, 16, 16, 64, 32, 32, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, @8);",
            "dma1's transfer 1 from global to right at line 6 writes bytes 0 to 511 of 'right', and matrix's product "
            "1 at line 8 reads there",
        ),
        (
            "tpk_npu_matrix(sums, left, right, 16, 16, 16, 64, 32, 32, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, @8);"
            "row(0, y, sums + 512, 64, @9);",
            "matrix's product 1 at line 8 writes bytes 512 to 575 of 'sums', and dma0's transfer 1 from sums to "
            "global at line 9 reads",
        ),
        (  # overwritten while the matrix unit still reads it
            "tpk_npu_matrix(sums, left, right, 16, 16, 16, 64, 32, 32, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, @8);"
            "row(0, left + 480, x, 64, @9);",
            "matrix's product 1 at line 8 reads bytes 480 to 511 of 'left', and dma0's transfer 1 from global to left "
            "at line 9 writes",
        ),
        (  # in global memory
            "row(0, y, vector, 1024, @5); row(1, vector + 4096, y + 1020, 64, @6);",
            "dma0's transfer 1 from vector to global at line 5 writes 4 bytes from address",
        ),
        (
            "row(0, y, vector, 1024, @5); tpk_npu_element_load(y + 512, 4, @6);",
            "dma0's transfer 1 from vector to global at line 5 writes 4 bytes from address",
        ),
        (  # ordered after the first, not after the second
            "row(0, vector, x, 64, @5); row(0, vector + 64, x, 64, @6); tpk_npu_wait(TPK_NPU_DMA, 1);"
            "tpk_npu_reads(vector, 128, @8);",
            "dma0's transfer 2 from global to vector at line 6 writes bytes 64 to 127",
        ),
        (  # what is filled is written, too
            "tpk_npu_transfer t = tile(vector, x, 2, 16, 64, 64); t.high[0] = 1; tpk_npu_dma(0, &t, @5);"
            "tpk_npu_reads(vector + 64, 4, @6);",
            "dma0's transfer 1 from global to vector at line 5 writes bytes 64 to 67",
        ),
        (  # by offsets
            "tpk_npu_writes(vector, 64, @4); memset((void *)vector, 0, 64);"
            "tpk_npu_gather(0, vector + 64, x, vector, 0, 16, 4, 4, 4, 0, @5); tpk_npu_element_store(x, 0, 4, @6);",
            "dma0's gather 1 from global to vector at line 5 reads 4 bytes from address",
        ),
    ],
)
def test_hazards_name_both_commands(fails: Fails, body: str, words: str) -> None:
    assert words in fails(body)


def test_hazards_are_found_in_every_run_and_on_every_core(fails: Fails) -> None:
    """The first program of the first core is reported, whatever the threads do."""
    body = "if (begin >= 8) row(0, vector, x, 64, @5), tpk_npu_reads(vector, 4, @6);"
    for _ in range(5):
        assert "core 2, programs 8 to 11 of 32: hazard" in fails(body, grid=32)


@pytest.mark.parametrize(
    "body",
    [
        # What a wait orders, it orders for all: the matrix unit's command after dma0's, the core after both.
        "row(0, left, x, 512, 1); tpk_npu_order(TPK_NPU_MATRIX, TPK_NPU_DMA, 1);"
        "tpk_npu_matrix(sums, left, right, 16, 16, 16, 64, 32, 32, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, 2);"
        "tpk_npu_wait(TPK_NPU_MATRIX, 1); row(1, left, x, 512, 3); tpk_npu_reads(sums, 1024, 4);",
        # Two read the same, and columns of one array lie between each other.
        "row(0, vector, x, 1024, 1); row(1, vector + 1024, x, 1024, 2); tpk_npu_reads(vector + 2048, 64, 3);",
        "tpk_npu_transfer a = tile(y, vector, 8, 4, 16, 16), b = tile(vector + 4096, y + 16, 8, 4, 16, 32);"
        "a.target_strides[0] = 32; tpk_npu_dma(0, &a, 1); tpk_npu_dma(1, &b, 2);",
        # A unit is in order; token 0 is complete; a command's own order is there without asking.
        "row(0, vector, x, 64, 1); row(0, y, vector, 64, 2); tpk_npu_wait(TPK_NPU_DMA + 1, 0);"
        "tpk_npu_order(TPK_NPU_DMA, TPK_NPU_DMA, 1); tpk_npu_wait(TPK_NPU_DMA, 2); tpk_npu_writes(vector, 64, 3);",
        # Nothing is moved, from nowhere.
        "tpk_npu_transfer a = tile(vector, 0, 8, 16, 64, 64); a.high[0] = 0; tpk_npu_dma(0, &a, 1);"
        "a = tile(0, vector, 8, 16, 64, 64); a.low[1] = 16; tpk_npu_dma(0, &a, 1);",
    ],
)
def test_what_is_ordered_is_no_hazard(chip: Npu, tmp_path: Path, body: str) -> None:
    x = chip.put(np.zeros(4096, np.int32))
    chip.launch_kernel(statements(tmp_path, body, N1), "kernel", 16, x, x + 8192)
    chip.queue_synchronize(0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (  # one element behind x, and before it
            "row(0, vector, x + 4096 * 4 - 60, 64, @5);",
            "the transfer at line 5, in its source, reaches 64 bytes that are not in one allocation: from address 0x",
        ),
        (
            "row(0, y - 4, vector, 64, @5);",
            "in its target, reaches 64 bytes that are not in one allocation: from address",
        ),
        (
            "tpk_npu_transfer t = tile(vector, x, 33, 4, 16, 512); tpk_npu_dma(0, &t, @5);",
            "one allocation: from address 0x",
        ),
        ("tpk_npu_element_store(y + 16384, 0, 4, @5);", "to address 0x"),
        ("row(2, vector, x, 64, @5);", "tpk_npu_dma at line 5 names DMA channel 2; a core has 2"),
        (
            "row(0, left, right, 64, @5);",
            "the transfer at line 5 goes from right to left, and dma has no such route",
        ),
        ("row(0, vector, x + (1ll << 45), 64, @5);", "line 5, in its source, reaches address 0x"),
        (
            "row(0, vector, 0, 64, @5);",
            "in its source, reaches address 0x0, which is neither in the core's window nor",
        ),
        (
            "row(0, vector + 8, x, 64, @5);",
            "in its target, begins at byte 8 of 'vector', which is not a multiple of 16",
        ),
        (
            "row(0, left + 65472, x, 128, @5);",
            "in its target, reaches from byte 65472 to byte 65599 of 'left', which has 65536 bytes",
        ),
        (
            "row(0, left + 65536, x, 64, @5);",
            "reaches 0 bytes behind the end of 'left', which has 65536 bytes: outside",
        ),
        (
            "tpk_npu_transfer t = tile(vector, x, 1, 4, 16, 16); t.element_bytes = 3; tpk_npu_dma(0, &t, @5);",
            "has elements of 3 bytes, which dma does not transfer",
        ),
        (
            "tpk_npu_transfer t = tile(vector, x, 1, 4, 16, 16); t.dimensions = 6; tpk_npu_dma(0, &t, @5);",
            "has 6 dimensions; dma takes 1 to 5",
        ),
        ("tpk_npu_wait(TPK_NPU_DMA, 1);", "tpk_npu_wait names command 1 of dma0, which has got 0 commands"),
        ("tpk_npu_order(1, 9, 0);", "tpk_npu_order names unit 9; the core has the units 0 to 3"),
        (
            "tpk_npu_reads(left, 64, @5);",
            "the core's read at line 5 is in 'left', to which core code has no access",
        ),
        (
            "tpk_npu_writes(x, 64, @5);",
            "outside of the core's window: core code has no access to global memory",
        ),
        ("tpk_npu_work(9, 1);", "tpk_npu_work got kind 9"),
        (
            "tpk_npu_element_load(x + 2, 4, @5);",
            "the core's load of an element at line 5 is of 4 bytes at 0x",
        ),
        (
            "tpk_npu_element_load(vector, 4, @5);",
            "which is neither in the core's window nor in global memory",
        ),
        (
            "tpk_npu_atomic(2, TPK_NPU_FP32, x, 0, 0, 0, @5);",
            "the core's atomic at line 5 has kind 2 and type 11",
        ),
        (
            "tpk_npu_matrix(sums, vector, right, 16, 16, 16, 64, 32, 32, 9, 9, 11, 0, @5);",
            "the product at line 5, in operand A, is in vector; it has to be in left",
        ),
        (
            "tpk_npu_matrix(sums, left + 2, right, 16, 16, 16, 64, 32, 32, 9, 9, 11, 0, @5);",
            "in operand A, begins at byte 2 of 'left', which is not a multiple of 16",
        ),
        (
            "tpk_npu_matrix(sums, left, right, 16, 16, 16, 64, 32, 32, 9, 10, 11, 0, @5);",
            "the product at line 5 multiplies fp16 by bf16 to fp32, which the matrix unit does not",
        ),
        (
            "tpk_npu_matrix(sums, left, right, 16, 0, 16, 64, 32, 32, 9, 9, 11, 0, @5);",
            "has the sizes 16, 0, 16; they have to be above 0",
        ),
        (
            "tpk_npu_gather(0, vector, x, vector + 64, 0, 4, 4, 2, 4, 0, @5);",
            "the gather at line 5 has elements of 4 bytes and offsets of 2",
        ),
        (
            "tpk_npu_gather(0, vector, 64, vector + 64, 0, 4, 4, 4, 1, 0, @5);",
            "the gather at line 5, in element 0, reaches address 0x",
        ),
        ("tpk_npu_gather(0, x, x, vector, 0, 4, 4, 4, 4, 0, @5);", "in its elements, is at 0x"),
    ],
)
def test_impossible_commands_say_why(fails: Fails, body: str, words: str) -> None:
    assert words in fails(body)


def test_a_chip_without_a_unit_says_so(tmp_path: Path) -> None:
    text = CHIPS["n1"].read_text()
    plain = text.partition("[matrix]")[0].replace("gather = true\n", "")
    description = parse(plain)
    source = (
        f"{HEAD}KERNEL(product, {{0}}) {{ (void)row; tpk_npu_matrix(0, 0, 0, 1, 1, 1, 1, 1, 1, 9, 9, 11, 0, 5); return 0; }}"
        "KERNEL(gather, {0}) { tpk_npu_gather(0, 0, 0, 0, 0, 4, 4, 4, 4, 0, 5); return 0; }"
    )
    binary = build(tmp_path, source, description)
    with Npu(description) as chip:
        for name, words in (
            ("product", "the product at line 5 needs a matrix unit, and n1 has none"),
            ("gather", "the gather at line 5 is for dma, which does not gather"),
        ):
            chip.launch_kernel(binary, name, 1)
            with pytest.raises(Refused, match=words):
                chip.queue_synchronize(0)


def test_kernels_for_other_chips_are_refused(chip: Npu, kernels: bytes, tmp_path: Path) -> None:
    other = parse(CHIPS["n1"].read_text().replace("= 768", "= 769"))
    binary = build(tmp_path, KERNELS.read_text(), other)
    with pytest.raises(
        Refused, match=f"digest {other.digest:#x}, and this one, n1, has {N1.digest:#x}"
    ) as info:
        chip.symbol(chip.load(binary), "add")
    assert info.value.status == "INVALID_MODULE"
    source = f"{HEAD}KERNEL(plain, {{0}}) {{ (void)row; return 0; }}"
    module = chip.load(build(tmp_path, source.replace("__chip", "__nothing"), N1))
    with pytest.raises(
        Refused, match="was compiled for cores that read memory themselves, and this chip is n1"
    ):
        chip.symbol(module, "plain")
    with Chip(cores=2) as other_chip:
        without = source.replace("tpk_npu_dma(channel, &made, line)", "made.fill")
        module = other_chip.load(build(tmp_path, without, N1))
        with pytest.raises(Refused, match="'plain' was compiled for a chip with a description, and this"):
            other_chip.symbol(module, "plain")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chip n1", "line 1 of the chip's description begins with 'chip'"),
        (
            N1.text.replace("host 32", "host x"),
            "line 4 of the chip's description has 'x' where a number has to be",
        ),
        (
            N1.text.replace("route global vector", "route globe vector"),
            "names the memory 'globe', which there is not",
        ),
        (N1.text.replace("core 2", "core 2 3"), "line 3 of the chip's description has more values"),
        (
            N1.text.replace("local left 2 65536 589824", "local left 2 65536 65536"),
            "overlaps the one before it",
        ),
    ],
)
def test_wrong_descriptions_are_refused(text: str, words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)) as info:
        Chip(description=text.encode())
    assert info.value.status == "INVALID_ARGUMENT"


def test_a_kernel_that_does_not_end_is_stopped(kernels: bytes) -> None:
    with Npu(N1, watchdog_ms=300) as chip:
        chip.launch_kernel(kernels, "endless", 1)
        with pytest.raises(
            Refused, match="more than 300 ms of CPU time without a command for another unit"
        ) as info:
            chip.queue_synchronize(0)
        assert info.value.status == "DEVICE_LOST"
        chip.reset()
        chip.modules.clear()
        x = np.ones(1024, np.float32)
        address = chip.put(x)
        chip.launch_kernel(kernels, "add", 1, address, address, address, 1024)
        np.testing.assert_array_equal(chip.get(address, x), 2)

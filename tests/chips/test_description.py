"""Descriptions of chips: what they say, and how a wrong file is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from source_tree import ROOT

from triton_porting_kit.chips import CHIPS, Scope, Work, load
from triton_porting_kit.chips.description import WINDOW_STEP
from triton_porting_kit.chips.files import (
    LARGEST_TEXT,
    MOST_CHANNELS,
    MOST_CORES,
    MOST_LOCAL_BYTES,
    MOST_MEMORIES,
    SUMS,
    parse,
)
from triton_porting_kit.errors import DescriptionError

N1 = CHIPS["n1"].read_text()
MANY_CORES = "clusters = 256\ncores_per_cluster = 8"
MANY_MEMORIES = "".join(
    f"[memory.m{i}]\nscope = 'core'\nbytes = 64\nalignment = 1\nbytes_per_cycle = 1\nlatency = 1\n"
    for i in range(30)
)


def test_n1_is_what_its_file_says() -> None:
    chip = load("n1")
    assert (chip.cores, chip.clusters, chip.clock_mhz) == (8, 2, 1000)
    assert chip.units == ("core", "matrix", "dma0", "dma1")
    assert {memory.name: chip.local_bytes(memory) >> 10 for memory in chip.local_memories} == {
        "vector": 512,
        "left": 64,
        "right": 64,
        "sums": 128,
        "shared": 1024,
    }
    assert chip.global_memory.bytes_per_cycle == 768
    assert [memory.name for memory in chip.memories if memory.core_access] == ["vector", "sums"]
    assert chip.routed("global", "left") == (0, 1)
    assert chip.routed("left", "global") == ()
    assert chip.vector.cycles[Work.DIVIDE] == 4
    assert chip.matrix is not None
    for types, cycles in {
        ("bf16", "bf16", "fp32"): 2,
        ("fp8e5", "fp8e4nv", "fp32"): 2,
        ("fp32", "fp32", "fp32"): 8,
        ("i8", "u8", "i32"): 1,
        ("fp16", "bf16", "fp32"): None,
        ("i8", "i8", "fp32"): None,
    }.items():
        product = chip.matrix.product(*types)
        assert (product and product.cycles) == cycles, types


@pytest.mark.parametrize("name", CHIPS)
def test_memories_of_a_window_lie_apart(name: str) -> None:
    """Each begins at a multiple of 64 KiB, and at least a page behind it belongs to none."""
    chip = load(name)
    end = 0
    for memory in chip.local_memories:
        base = chip.window[memory.name]
        assert base % WINDOW_STEP == 0
        assert base >= end
        end = base + chip.local_bytes(memory) + WINDOW_STEP
    assert chip.window_bytes >= end
    assert chip.local_memories[0].scope is Scope.CORE


@pytest.mark.parametrize("name", CHIPS)
def test_the_digest_is_that_of_the_text(name: str) -> None:
    chip = load(name)
    assert chip.text.splitlines()[0] == f"tpk-chip 1 {chip.digest:016x}"
    assert 0 < chip.digest < 1 << 64
    assert parse(CHIPS[name].read_text()).digest == chip.digest
    assert replace(chip, clock_mhz=chip.clock_mhz + 1).digest != chip.digest


@pytest.mark.parametrize(
    ("old", "new", "problem", "line"),
    [
        ("clock_mhz = 1000", "clock_mhz = 0", "clock_mhz is 0; it has to be an integer from 1", "clock_mhz"),
        ("clock_mhz = 1000", "", "clock_mhz is missing", ""),
        ("clusters = 2", "clusters = true", "clusters is True; it has to be an integer", "clusters"),
        ("clusters = 2", "clusters = 2\nspeed = 1", "speed is unknown; known are", "speed"),
        (
            "clock_mhz",
            "clock_mhzz",
            "clock_mhzz is unknown, and probably means clock_mhz; known",
            "clock_mhzz",
        ),
        ("[memory.sums]", "[memroy.sums]", "memroy is unknown, and probably means memory", "[memroy.sums]"),
        ("divide = 4", "divid = 4", "vector.cycles.divid is unknown, and probably means divide", "divid = 4"),
        (
            "clusters = 2\ncores_per_cluster = 4",
            MANY_CORES,
            "of 256 clusters: 2048 cores; at most 1024",
            "cores",
        ),
        ("bytes = 524288", f"bytes = {1 << 45}", "take 281474989817856 bytes of addresses; at most", "bytes"),
        (
            "[engine.dma]",
            f"{MANY_MEMORIES}[engine.dma]",
            "memory has 36 memories; a chip has at most 32",
            "[mem",
        ),
        ("[core]", "[core", "Expected ']'", "[core"),
        ("[core]", "[kore]", "kore is unknown, and probably means core", "[kore]"),
        ("[core]\nissue_cycles = 2", "", "core is missing; it has to be a table", ""),
        ('"cluster"', '"rack"', "memory.shared.scope is 'rack'; it has to be one of chip", 'scope = "rack"'),
        ('"cluster"', '"chip"', "memory has 2 memories of scope chip", "[memory.global]"),
        ("bytes = 4194304 ", "bytes = 4194305 ", "64 bytes: write 4194304 or 4194560", "bytes"),
        ("alignment = 1\n", "alignment = 3\n", "memory.global.alignment is 3; it has to be", "alignment = 3"),
        ("latency = 30", "latency = 30\ncore_access = true", "is for memories of scope core", "core_access"),
        ('"sums -> vector"', '"sums to vector"', "'sums to vector'; a route is written", "routes"),
        ('"sums -> vector"', '"sums -> victor"', "'sums -> victor', and there is no", "routes"),
        ("element_bytes = [1, 2, 4, 8]", "element_bytes = [3]", "is [3]; elements have", "element_bytes"),
        ("divide = 4", "divide = -1", "vector.cycles.divide is -1", "divide = -1"),
        ("divide = 4", "", "vector.cycles.divide is missing", "[vector.cycles]"),
        ('b = "right"', 'b = "global"', "matrix.b is 'global', which is no local memory", 'b = "global"'),
        (
            '["i8", "u8"]',
            '["i9"]',
            "matrix.product.a has 'i9', whose products are not summed in i32; i8, u8 are",
            "a",
        ),
        (
            "[16, 16, 16]\ncycles = 8",
            "[16, 16]\ncycles = 8",
            "matrix.product.tile is [16, 16]",
            "tile = [16, 16]",
        ),
        ("]\ncycles = 8", "]\ncycles = 0", "matrix.product.cycles is 0", "cycles = 0"),
        ("bytes_per_cycle = 512\n", "", "memory.shared.bytes_per_cycle is missing", "[memory.shared]"),
    ],
)
def test_errors_name_the_line(old: str, new: str, problem: str, line: str) -> None:
    """`line` is how the named line begins; empty for a key of the file that is missing."""
    assert old in N1
    text = N1.replace(old, new, 1)
    with pytest.raises(DescriptionError) as info:
        parse(text, "mine.toml")
    error = info.value
    assert problem in error.problem
    assert str(error) == f"mine.toml:{f'{error.line}:' if error.line else ''} {error.problem}"
    assert (text.splitlines()[error.line - 1] if error.line else "").startswith(line)
    assert bool(error.line) == bool(line)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line) == (str(error), error.line)


def test_a_file_is_read_again_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, clusters in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(N1.replace("clusters = 2", f"clusters = {clusters}"))
        monkeypatch.chdir(tmp_path / folder)
        assert load("mine.toml").clusters == clusters
    Path("mine.toml").write_text(N1.replace("clusters = 2", "clusters = 3"))
    assert load("mine.toml").clusters == 3
    assert load("mine.toml") is load("mine.toml")


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(N1, encoding="utf-16")
    with pytest.raises(DescriptionError, match=r"mine.toml: it is not a TOML file, whose text is UTF-8"):
        load(str(path))


def test_the_docs_have_the_types_and_limits() -> None:
    docs = (ROOT / "docs" / "npu.md").read_text()
    for sums, types in SUMS.items():
        assert f"| `{sums}` | {', '.join(f'`{name}`' for name in types)} |" in docs
    virtual = ROOT / "driver" / "virtual" / "native" / "shared"
    native = "".join(
        (virtual / name).read_text() for name in ("description.cpp", "description.h", "protocol.h")
    )
    for row, limit, said in (
        ("cores", MOST_CORES, f"has more than {MOST_CORES} cores"),
        ("memories, with global memory", MOST_MEMORIES, f"MostMemories = {MOST_MEMORIES};"),
        ("DMA channels of a core", MOST_CHANNELS, f"MostChannels = {MOST_CHANNELS};"),
        ("`ChipDescription.text`", f"{LARGEST_TEXT} bytes", "DescriptionBytes = 4096;"),
    ):
        assert f"| {row} | {limit} |" in docs
        assert said in native
    assert MOST_LOCAL_BYTES == 1 << 44
    assert "2⁴⁴ bytes of addresses" in docs

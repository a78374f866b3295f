"""Sizes of caches: read from text and from the system, and what blocks of products make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.caches import Caches
from triton_porting_kit.errors import OptionError

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("text", "caches"),
    [
        ("32K,256K", Caches(32 * KIB, 256 * KIB)),
        ("48k, 1280K", Caches(48 * KIB, 1280 * KIB)),
        ("65536,2M,114M", Caches(64 * KIB, 2 * MIB, 114 * MIB)),
        ("48K,1M,32M/16", Caches(48 * KIB, MIB, 32 * MIB, 16)),
    ],
)
def test_text(text: str, caches: Caches) -> None:
    assert Caches.parse(text) == caches == Caches.parse(str(caches))


@pytest.mark.parametrize(
    "text", ["", "32K", "32K,", "32K,1M,", "32K,1M/4", "32K,1M,8M/0", "32K,1M,8M/x", "a,b", "1,2,3,4", "-1,2"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"cannot be read\n.*L1,L2"):
        Caches.parse(text)


@pytest.mark.parametrize("text", ["1K,1M", "2M,1M"])
def test_sizes_of_no_cpu_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="less than 4K, or more than L2"):
        Caches.parse(text)


def described(folder: Path, *caches: tuple[str, str, str, str]) -> Path:
    for number, values in enumerate(caches):
        index = folder / f"index{number}"
        index.mkdir()
        for name, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            (index / name).write_text(value + "\n")
    return folder


def test_the_systems_description(tmp_path: Path) -> None:
    folder = described(
        tmp_path,
        ("1", "Data", "32K", "0,64"),
        ("1", "Instruction", "64K", "0,64"),
        ("2", "Unified", "512K", "0,64"),
        ("3", "Unified", "16384K", "0-3,64-67"),
    )
    assert Caches.detect(folder) == Caches(32 * KIB, 512 * KIB, 16 * MIB, 8)


def test_no_description_and_one_without_l2(tmp_path: Path) -> None:
    assert Caches.detect(tmp_path / "none") is None
    assert Caches.detect(described(tmp_path, ("1", "Data", "32K", "0"))) is None


def test_the_host_takes_what_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_CPU_CACHES", "32K,512K,16M/8")
    assert CpuTarget.host().caches == Caches(32 * KIB, 512 * KIB, 16 * MIB, 8)
    monkeypatch.setenv("TPK_CPU_CACHES", "much")
    with pytest.raises(OptionError, match="TPK_CPU_CACHES"):
        CpuTarget.host()


def test_options_hold_the_whole_target() -> None:
    target = CpuTarget.named("znver3")
    assert target.options()["cpu_caches"] == "32K,512K,32M/16"
    again = CpuTarget.from_options(target.options())
    assert (again.caches, again.features) == (target.caches, target.features)
    # What was compiled before options had caches is read by its CPU's name.
    del (old := target.options())["cpu_caches"]
    assert CpuTarget.from_options(old).caches == target.caches


@pytest.mark.parametrize(
    ("caches", "floats", "integers"),
    [("32K,1M", 24, 16), ("48K,2M", 32, 32)],  # Cascade Lake and Granite Rapids
)
def test_strips_with_avx512_leave_room_for_rows(caches: str, floats: int, integers: int) -> None:
    target = replace(CpuTarget.named("cascadelake"), caches=Caches.parse(caches))
    assert (target.strip_bytes("f32"), target.strip_bytes("i32")) == (floats * KIB, integers * KIB)

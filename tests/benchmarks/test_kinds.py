"""Kinds of CPU: told apart, named, and drawn beside each other."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Results
from benchmarks.kinds import Kind, file_of, host_kind, kind_of, read_kinds, reported_vendor, title_of
from benchmarks.kinds_picture import COLOURS, WIDTH, picture
from benchmarks.run import opening
from triton_porting_kit.compiler import CpuTarget

RATIO = Figure("kernels", "softmax <fp32>", "torch / ours", 2, "x", 1.0, 0.9, 1.1, less=False, bar=0.9)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("vendor", "cpu", "name"),
    [
        ("AuthenticAMD", "znver3", "amd-avx2"),
        ("AuthenticAMD", "znver4", "amd-avx512"),
        ("GenuineIntel", "icelake-server", "intel-avx512"),
        ("GenuineIntel", "sapphirerapids", "intel-amx"),
        ("ARM", "neoverse-v2", "arm-neon"),
        ("", "x86-64", "other-no-vectors"),
    ],
)
def test_kinds_of_named_cpus(vendor: str, cpu: str, name: str) -> None:
    kind = kind_of(vendor, CpuTarget.named(cpu).features)
    assert kind.name == name
    assert "no-vectors" in name or title_of(name) == kind.title
    assert kind.exceeds_avx2 == ("avx512f" in CpuTarget.named(cpu).features)


def test_the_host_without_its_widest_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    if "avx2" not in CpuTarget.host().features:
        monkeypatch.setattr(CpuTarget, "host", lambda: CpuTarget.named("znver4"))
    monkeypatch.setenv("TPK_CPU_WITHOUT", "avx512,amx")
    assert host_kind().level in ("AVX2", "AVX512")
    assert "avx512f" in CpuTarget.host().features or host_kind().level == "AVX2"


def test_results_of_many_threads_have_a_file_of_their_own() -> None:
    kind = Kind("Intel", "AMX")
    assert (file_of(kind, 2), file_of(kind, 16)) == ("intel-amx", "intel-amx-16")
    assert title_of("intel-amx-16") == "Intel, AMX, 16 threads"


@pytest.mark.parametrize(
    ("text", "vendor"),
    [
        ("processor\t: 0\nvendor_id\t: GenuineIntel\n", "GenuineIntel"),
        ("processor : 0\nCPU implementer\t: 0x41\n", "ARM"),
        ("CPU implementer : 0x61\n", "0x61"),
        ("", ""),
    ],
)
def test_vendors_report_themselves(tmp_path: Path, text: str, vendor: str) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert reported_vendor(tmp_path / "cpuinfo") == vendor
    assert reported_vendor(tmp_path / "none") == ""


def test_results_are_found_by_the_name_of_the_kind(tmp_path: Path) -> None:
    results = Results({"date": "2026-01-02"}, (RATIO,))
    for name in ("intel-amx", "amd-avx2"):
        results.write(tmp_path / f"{name}.json")
    assert read_kinds(tmp_path) == {"amd-avx2": results, "intel-amx": results}


def test_a_run_says_the_kind_and_its_targets() -> None:
    first, *targets = opening(Kind("Intel", "AMX"), "Xeon", "softmax")
    assert first == "Intel, AMX: Xeon"
    assert targets[0] == "  softmax fp32 4096x1024: torch ≥ 1.2 / 1.2"
    assert not any("matmul" in line for line in targets)


def test_the_picture_has_a_dot_for_each_kernel_and_kind() -> None:
    slow = replace(RATIO, value=0.5)
    kinds = {
        "amd-avx2": Results({}, (RATIO, replace(RATIO, threads=1, value=4.0))),
        "intel-amx": Results({}, (slow, replace(slow, name="matmul", value=500.0))),
    }
    drawn = ET.fromstring(picture(kinds))
    dots = [circle for circle in drawn.iter(f"{SVG}circle") if circle.find(f"{SVG}title") is not None]
    assert [(dot.findtext(f"{SVG}title"), dot.get("stroke")) for dot in dots] == [
        ("softmax <fp32>: 1.00", COLOURS[0]),
        ("softmax <fp32>: 0.50", COLOURS[1]),
        ("matmul: 500", COLOURS[1]),
    ]
    places = [float(dot.get("cx", "")) for dot in dots]
    assert places[1] < places[0] < places[2] < WIDTH
    assert [dot.get("fill") == "white" for dot in dots] == [False, True, False]

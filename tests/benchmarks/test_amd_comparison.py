"""The comparison of the AMD backend with Triton's own: what it marks, and a kernel compared with itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import amd_comparison
from benchmarks.amd_comparison import Row, compare, main
from benchmarks.amd_kernels import CHECKS, Figures, family
from triton_porting_kit.conformance.catalogue import checks

FIGURES = Figures(
    vgprs=100,
    agprs=0,
    sgprs=30,
    spills=0,
    lds=8192,
    code=4000,
    instructions=600,
    families={"load": 8, "v_mfma_f32_32x32x8_bf16": 20, "vector": 300},
    compile_ms=100.0,
    options={"num_warps": 4, "kpack": 1},
)
APP = typer.Typer()
APP.command()(main)


def beyond(**changes: object) -> list[str]:
    return Row("gfx942", "k", replace(FIGURES, **changes), FIGURES).beyond  # type: ignore[arg-type]


def test_ten_percent_are_allowed() -> None:
    assert beyond() == beyond(vgprs=110, sgprs=27, lds=7400, code=4400, compile_ms=9000.0) == []
    # More of the same is not another family.
    assert beyond(families=dict.fromkeys(FIGURES.families, 1)) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"vgprs": 111}, ["VGPR +11%"]),
        ({"vgprs": 89}, ["VGPR -11%"]),
        ({"agprs": 1}, ["AGPR 1 for 0"]),
        ({"spills": 1}, ["spills 1 for 0"]),
        ({"lds": 0, "code": 8000}, ["LDS -100%", "code +100%"]),
        ({"families": {"load": 8, "vector": 300}}, ["-v_mfma_f32_32x32x8_bf16"]),
        ({"families": FIGURES.families | {"scratch": 1}}, ["+scratch"]),
        ({"options": {"num_warps": 8, "kpack": 1}}, ["num_warps=8 for 4"]),
    ],
)
def test_what_is_beyond(changes: dict[str, object], told: list[str]) -> None:
    assert beyond(**changes) == told


def test_kernels_that_do_not_compile() -> None:
    assert Row("gfx942", "k", "no", FIGURES).beyond == ["compiled by one only"]
    assert Row("gfx942", "k", FIGURES, "no").beyond == ["compiled by one only"]
    assert Row("gfx942", "k", "no", "no, too").beyond == []
    assert Row("gfx942", "k", "no", FIGURES).to_json()["ours"] == {"error": "no"}


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16_bf16"),
        ("v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_f16"),
        ("v_smfmac_f32_16x16x32_bf16", "v_smfmac_f32_16x16x32_bf16"),
        ("v_fma_f32", "vector"),
        ("v_pk_fma_f32", "packed arithmetic"),
        ("ds_read_b128", "lds"),
        ("buffer_load_dwordx4", "load"),
        ("global_load_b128", "load"),
        ("global_atomic_add_f32", "atomic"),
        ("buffer_store_short", "store"),
        ("scratch_store_dword", "scratch"),
        ("s_load_dwordx2", "scalar load"),
        ("s_cbranch_execz", "branch"),
        ("s_barrier", "barrier"),
        ("s_waitcnt", "waiting"),
        ("s_wait_loadcnt", "waiting"),
        ("s_nop", "waiting"),
        ("s_add_u32", "scalar"),
    ],
)
def test_families(mnemonic: str, expected: str) -> None:
    assert family(mnemonic) == expected


def test_checks_are_the_suite_s() -> None:
    assert set(CHECKS) <= {check.name.partition("/")[2] for check in checks(("kernels",)) if check.compiles}


def test_the_kit_s_backend_makes_what_triton_s_own_makes() -> None:
    rows = list(compare("gfx942", "amdgpu:amdgpu", "amd:hip", "^softmax/fp32-1x1$|^matmul/bf16-17x33x65$"))
    assert [row.name for row in rows] == [
        "softmax/fp32-1x1 softmax_kernel",
        "matmul/bf16-17x33x65 matmul_kernel",
    ]
    for row in rows:
        assert row.beyond == []
        assert isinstance(row.ours, Figures)
        assert row.ours.vgprs > 0
        assert row.ours.compile_ms > 0
        assert row.ours.instructions == sum(row.ours.families.values())
        assert row.ours.options["num_warps"] == 4
        assert any(name.startswith("v_mfma") for name in row.ours.families) == ("matmul" in row.name)


@pytest.mark.parametrize(
    ("ours", "status"), [(FIGURES, 0), (replace(FIGURES, vgprs=200), 1), ("Refused: no", 1)]
)
def test_exit_status_and_results(
    ours: Figures | str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [Row("gfx942", "k", ours, FIGURES), Row("gfx942", "other", FIGURES, FIGURES)]
    monkeypatch.setattr(amd_comparison, "compare", lambda *_: iter(rows))
    out = tmp_path / "results.json"
    done = CliRunner().invoke(APP, ["--arch", "gfx942", "--out", str(out)])
    assert done.exit_code == status, done.output
    assert f"2 kernels, {status} beyond 10%" in done.output
    assert [bool(row["beyond"]) for row in json.loads(out.read_text())["rows"]] == [bool(status), False]


def test_nothing_that_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd_comparison, "compare", lambda *_: iter(()))
    assert CliRunner().invoke(APP, ["--only", "nothing"]).exit_code == 2
    monkeypatch.setattr(amd_comparison, "compare", lambda *_: iter([Row("gfx777", "k", "no", "no, too")]))
    done = CliRunner().invoke(APP, ["--arch", "gfx777"])
    assert done.exit_code == 2
    assert "1 kernels, 0 beyond 10%; 0 compiled by both" in done.output


def test_backend_that_is_not_there() -> None:
    done = CliRunner().invoke(APP, ["--arch", "gfx942", "--ours", "nobody:nobody"])
    assert done.exit_code == 2
    assert "nobody for gfx942 ended with status 1" in done.output
    assert "knows no backend 'nobody'" in done.output.replace("\n", " ")


def test_help() -> None:
    done = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "120"})
    assert done.exit_code == 0
    assert "exit status is 1" in done.output

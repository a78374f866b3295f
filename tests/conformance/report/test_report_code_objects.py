"""What reports show of the code objects of a run that only compiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from junitparser import JUnitXml
from report_runs import record, report

from triton_porting_kit.conformance.report import code_objects, document, junit
from triton_porting_kit.conformance.report.evidence import exhibit, in_text
from triton_porting_kit.conformance.report.page import text as page
from triton_porting_kit.conformance.report.page.rows import rows

DOT = {"arch": "gfx942", "vgprs": 48, "agprs": 16, "lds": 8192, "matrix": {"v_mfma_f32_16x16x16_bf16": 6}}
SPILLED = {"arch": "gfx942", "vgprs": 512, "spills": 9, "instructions": 4000}


def compiled(what: str, **held: Any) -> dict[str, Any]:
    return {"kind": "compiled", "what": what, "bytes": 5304, "code_object": held}


RECORDS = [
    record("language/matrix-products/dot-bf16-16x32x64", compiled("kernel_dot", **DOT)),
    record("kernels/matmul/bf16-odd", compiled("matmul", **DOT), compiled("matmul", **SPILLED)),
    record("kernels/softmax/fp32-odd", {"kind": "compiled", "what": "softmax", "bytes": 100}),
]


def test_a_check_shows_its_own() -> None:
    assert code_objects.line(RECORDS[0]) == (
        "kernel_dot: 48 VGPRs, 16 AGPRs, 8,192 bytes of LDS, 6 v_mfma_f32_16x16x16_bf16"
    )
    assert code_objects.line(RECORDS[2]) == ""
    shown = dict(exhibit(RECORDS[0].evidence[0]).facts)
    assert shown["architecture"] == "gfx942"
    assert shown["matrix instructions"] == "6 v_mfma_f32_16x16x16_bf16"
    assert "9" in in_text(RECORDS[1])


def test_groups_show_their_largest() -> None:
    assert list(code_objects.rows(RECORDS)) == [
        ["language/matrix-products", "1", "48", "16", "0", "8,192", "0", "v_mfma_f32_16x16x16_bf16 (1)"],
        ["kernels/matmul", "2", "512", "16", "0", "8,192", "1", "v_mfma_f32_16x16x16_bf16 (1)"],
    ]


def test_every_form_of_the_report_has_them(tmp_path: Path) -> None:
    found = report(RECORDS)
    data = document.document_of(found)
    assert data["checks"][0]["evidence"][0]["code_object"] == DOT
    assert 'id="code-objects"' in page(found)
    assert any("v_mfma" in text for text in rows(found)["strings"])
    (tmp_path / "junit.xml").write_text(junit.text(found))
    outputs = [case.system_out for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml")) for case in suite]
    assert sum("v_mfma_f32_16x16x16_bf16" in (output or "") for output in outputs) == 2


def test_runs_without_them_have_no_such_part() -> None:
    assert 'id="code-objects"' not in page(report(RECORDS[2:]))

"""The structured form of whole kernels, as checked-in text.

After an intended change, run once with TPK_UPDATE_EXPECTED=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sample_kernels import SAMPLES
from ttir_source import ttir_text

from triton_porting_kit.compiler.structured import import_ttir

_FOLDER = Path(__file__).parent / "expected"


@pytest.mark.parametrize("name", SAMPLES)
def test_structured_form_is_as_expected(name: str) -> None:
    sample = SAMPLES[name]
    module = import_ttir(ttir_text(sample.kernel, sample.signature, **sample.constexprs), promises=True)
    assert module.operation.verify()
    text = str(module)
    file = _FOLDER / f"{name}.mlir"
    if os.environ.get("TPK_UPDATE_EXPECTED") == "1":
        _FOLDER.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


def test_matmul_reads_like_one() -> None:
    text = (_FOLDER / "matmul.mlir").read_text()
    loop = text[text.index("scf.for") :]
    assert "-> (i64, i64, tensor<64x64xf32>)" in loop
    counts = {op: text.count(op) for op in ('"tpk.load"', "linalg.matmul", '"tpk.store"', "scf.for")}
    assert counts == {'"tpk.load"': 2, "linalg.matmul": 1, '"tpk.store"': 1, "scf.for": 1}
    assert "tpk.gather" not in text
    assert "tensor.splat" not in text


def test_operations_keep_the_location_of_the_kernel_line() -> None:
    sample = SAMPLES["vector_add"]
    module = import_ttir(ttir_text(sample.kernel, sample.signature, **sample.constexprs), promises=True)
    text = module.operation.get_asm(enable_debug_info=True)
    assert "sample_kernels.py" in text
    assert all("loc(unknown)" not in line for line in text.splitlines() if '"tpk.load"' in line)

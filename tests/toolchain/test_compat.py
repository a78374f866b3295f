"""The door to Triton's internals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triton._C.libtriton import ir as triton_ir

from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain import compat, mlir


def parsed(text: str, folder: Path) -> Any:
    """A Triton module from text, which keeps its context as Triton's own compiler makes it do."""
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    file = folder / "module.ttir"
    file.write_text(text)
    module = triton_ir.parse_mlir_module(str(file), context)
    module.context = context
    return module


KERNEL = """
tt.func public @kernel(%p: !tt.ptr<f32>) {
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  tt.return
}
"""


@pytest.mark.parametrize(
    "attributes", ["", "attributes {a.first = 1 : i32}", 'attributes {a.first = 1 : i32, z.last = "x"}']
)
def test_generic_text_is_read_by_upstream_mlir(attributes: str, tmp_path: Path) -> None:
    module = parsed(f"module {attributes} {{ {KERNEL} }}", tmp_path)
    text = compat.generic_text(module)
    assert "data_layout" not in text
    assert '"tt.make_range"() <{' in text
    found = mlir.parse_module(text).operation
    for name in ("a.first", "z.last"):
        assert (name in found.attributes) == (name in attributes)


def test_a_pass_that_is_not_there_is_named(tmp_path: Path) -> None:
    module = parsed(f"module {{ {KERNEL} }}", tmp_path)
    compat.run_passes(module, ["common.canonicalizer"])
    assert "make_range" not in str(module)
    with pytest.raises(ToolchainError, match=r"ttir\.no_such_pass"):
        compat.run_passes(module, ["ttir.no_such_pass"])

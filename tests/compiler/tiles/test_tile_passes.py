"""The passes by name: those that a vendor leaves out or replaces, and what the rest still computes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from chip_kernels import add, one_product
from source_tree import ROOT
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.compiler import npu_pipeline
from triton_porting_kit.compiler.tiles.passes import TILE_PASSES, tile_passes
from triton_porting_kit.errors import OptionError
from triton_porting_kit.kernels.layer_norm import layer_norm_backward_kernel
from triton_porting_kit.porting.template import Template

ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
PRODUCT = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}


def placed(kernel: Any, signature: dict[str, str], constants: dict[str, int], **given: Any) -> str:
    stages = npu_pipeline(chips.load("n1"), **given).after("ttir").until("placed")
    return str(stages.run(ttir_text(kernel, signature, **constants), {})["placed"])


def test_all_run_in_the_kit_s_order() -> None:
    assert tile_passes() == dict(TILE_PASSES)
    names = ("programs", "split", "turning", "products", "transfer", "beside", "sending", "overlap", "waits")
    assert tuple(tile_passes(names)) == names


def test_generated_repositories_and_the_docs_name_all_in_the_kit_s_order() -> None:
    template = Template.own().root / "template" / "src" / "{{package}}" / "compiler.py.jinja"
    listed = template.read_text().partition("PASSES = (")[2].partition("\n)")[0]
    assert re.findall(r'"(\w+)",  # \w', listed) == list(TILE_PASSES)
    table = (ROOT / "docs" / "npu-compiler.md").read_text().partition("| name | without it |")[2]
    rows = [row.split("|")[1] for row in table.partition("\n\n")[0].splitlines() if "`" in row]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(TILE_PASSES)


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in TILE_PASSES if name not in names)


def test_without_products_they_are_vector_code() -> None:
    constants = {"M": 16, "N": 16, "K": 16}
    assert "tpk.npu_matrix" in placed(one_product, PRODUCT, constants)
    less = placed(one_product, PRODUCT, constants, passes=without("products"))
    assert "tpk.npu_matrix" not in less
    assert "linalg.matmul" in less


def test_without_overlap_buffers_have_one_copy() -> None:
    assert "copies = 2" in placed(add, ADD, {"B": 1024})
    less = placed(add, ADD, {"B": 1024}, passes=without("sending", "overlap"))
    assert "copies" not in less
    assert "tpk.npu_programs" in less


def test_without_programs_the_kernel_s_body_is_that_of_one() -> None:
    assert "tpk.npu_programs" not in placed(add, ADD, {"B": 1024}, passes=without("programs"))


def test_an_own_pass_takes_the_place_of_the_kit_s() -> None:
    seen: list[tuple[str, bool]] = []

    def keep_waits(module: Any, chip: chips.ChipDescription) -> None:
        seen.append((chip.name, "tpk.npu_wait" in str(module)))

    placed(add, ADD, {"B": 1024}, own_passes={"waits": keep_waits})
    assert seen == [("n1", True)]
    names = (*TILE_PASSES, "mine")
    placed(add, ADD, {"B": 1024}, passes=names, own_passes={"mine": keep_waits})
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("transfer", "unroll"), "there is no pass 'unroll'"),
        (("programs", "waits"), "lack 'transfer'"),
        (("transfer", "waits", "waits"), "twice"),
    ],
)
def test_other_lists_are_refused(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        tile_passes(names)


@pytest.mark.parametrize("names", [None, ("programs", "transfer")])
def test_an_own_pass_that_would_never_run_is_refused(names: tuple[str, ...] | None) -> None:
    with pytest.raises(OptionError, match=r"'turn' would never run: .* are programs,.* transfer"):
        tile_passes(names, {"turn": print})


def test_the_same_kernel_gives_the_same_text_each_time() -> None:
    """Sets of MLIR's values have no order: it changes with the addresses of the values."""
    names = layer_norm_backward_kernel.arg_names[:-1]
    signature = {name: "*fp32" if name.endswith("_ptr") else "i32" for name in names}
    texts = {placed(layer_norm_backward_kernel, signature, {"BLOCK": 1024}) for _ in range(8)}
    assert len(texts) == 1

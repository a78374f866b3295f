"""`tpk conform --compile-only`: for an architecture or a whole target, judged by what is in the binaries."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from conform_helpers import conform, run_in

from triton_porting_kit.conformance.command.request import check_tools, target_of
from triton_porting_kit.conformance.compile_only import CompileOnlyDriver, parse_target
from triton_porting_kit.conformance.execution.plan import PlanError
from triton_porting_kit.conformance.execution.settings import CATALOGUE
from triton_porting_kit.toolchain import amdgpu_disassembler, compat

FEW = ("language/matrix-products/dot-bf16-16x32x128", "language/matrix-products/dot-fp8e4b15-16x32x128")


BACKENDS: dict[str, dict[str, object]] = {"the kit's backend": {"backend": "amdgpu", "arch": "gfx942"}}
if compat.release() >= (3, 8) or importlib.util.find_spec("torch"):  # before, Triton's own imports torch
    BACKENDS["Triton's own"] = {"backend": "amd", "target": "hip:gfx942:64", "selections": FEW[:1]}


@pytest.mark.parametrize("options", BACKENDS.values(), ids=BACKENDS.keys())
def test_code_objects_are_judged(tmp_path: Path, options: dict[str, object]) -> None:
    status, printed = conform(tmp_path, **{"selections": FEW, "catalogue": CATALOGUE, **options})
    assert status == 0, printed
    report = json.loads((tmp_path / "report.json").read_text())
    product, *others = report["checks"]
    (item,) = product["evidence"]
    assert item["code_object"]["arch"] == "gfx942"
    assert any(name.endswith("bf16") for name in item["code_object"]["matrix"])
    assert [check["status"] for check in others] == ["unsupported"] * len(others)
    target = run_in(tmp_path)["options"]["target"]
    assert target.split(":")[1:] == ["gfx942", "64"]


def test_architectures_are_the_backends_own() -> None:
    assert target_of("amdgpu", "gfx1201") == "amdgpu:gfx1201:32"
    with pytest.raises(PlanError, match=r"no architecture 'gfx99'[\s\S]*gfx942"):
        target_of("amdgpu", "gfx99")
    with pytest.raises(PlanError, match="does not report which architectures it compiles for"):
        target_of("amd", "gfx942")


def test_what_cannot_be_judged_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amdgpu_disassembler, "is_available", lambda: False)
    check_tools("")
    check_tools("cuda:90:32")
    with pytest.raises(
        PlanError, match=r"no disassembler is installed: install the kit with its extra `amd`"
    ):
        check_tools("hip:gfx942:64")
    with pytest.raises(PlanError, match="is not BACKEND:ARCH:WARP"):
        check_tools("hip")


@pytest.mark.parametrize(("target", "shared"), [("hip:gfx950:64", 160 << 10), ("cuda:90:32", 1 << 30)])
def test_on_chip_memory_is_the_architectures(target: str, shared: int) -> None:
    utils = CompileOnlyDriver(parse_target(target)).utils
    assert utils.get_device_properties(0)["max_shared_mem"] == shared


def test_binaries_are_let_go_with_their_module() -> None:
    utils = CompileOnlyDriver(parse_target("hip:gfx950:64")).utils
    module, function, *_ = utils.load_binary("kernel", b"content", 0, 0)
    assert utils.binaries[function].content == b"content"
    utils.unload_module(module)
    assert not utils.binaries

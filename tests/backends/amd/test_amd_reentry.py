"""Dumps, overrides, and going on from the text of any stage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import triton
from amd_compiling import STAGES, compiled, source
from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.errors import CompilationError

TARGET = GPUTarget("amdgpu", "gfx942", 64)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))


def dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Path]:
    """The artefacts of `softmax`, compiled with these options, by stage."""
    folder = tmp_path / f"dump{options}"
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_KERNEL_DUMP", "1")
        patch.setenv("TRITON_DUMP_DIR", str(folder))
        patch.setenv("TRITON_ALWAYS_COMPILE", "1")
        triton.compile(source("softmax"), target=TARGET, options=options)
    return {path.suffix[1:]: path for path in folder.rglob("softmax.*")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`place(stage)`: where the file that overrides a stage of `softmax` goes."""
    found = dumped(tmp_path, monkeypatch)

    def of(stage: str) -> Path:
        path = tmp_path / "override" / found[stage].parent.name / found[stage].name
        path.parent.mkdir(parents=True)
        return path

    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    return of


def test_dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dumped(tmp_path, monkeypatch)
    assert set(STAGES) <= set(found)
    assert ".amdhsa_kernel softmax" in found["amdgcn"].read_text()


@pytest.mark.parametrize("stage", STAGES)
def test_override_of_each_stage(
    stage: str, place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dumped(tmp_path, monkeypatch, num_warps=8)
    shutil.copy(other[stage], place(stage))
    kernel = triton.compile(source("softmax"), target=TARGET)
    assert kernel.metadata.overridden_stages == [stage]
    threads = read_code_object(kernel.asm["hsaco"]).kernels["softmax"].max_flat_workgroup_size
    assert threads == (256 if stage == "ttir" else 512)
    if stage != "ttir":  # which does not know of warps
        assert kernel.asm["hsaco"] == other["hsaco"].read_bytes()
    if stage not in ("ttir", "ttgir", "hsaco"):
        assert kernel.asm[stage] == other[stage].read_text()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("content", [b"rubbish {", b"", b"\xff\xfe\x00"])
def test_broken_override_names_file_and_stage(stage: str, content: bytes, place: Any) -> None:
    place(stage).write_bytes(content)
    with pytest.raises(
        CompilationError, match=rf"softmax\.{stage}, which overrides the stage {stage}, cannot be used"
    ):
        triton.compile(source("softmax"), target=TARGET)


def test_a_code_object_for_another_chip_is_refused(place: Any) -> None:
    place("hsaco").write_bytes(compiled("softmax", "gfx90a").asm["hsaco"])
    with pytest.raises(CompilationError, match="it is for gfx90a, and this compilation for gfx942"):
        triton.compile(source("softmax"), target=TARGET)


def test_assembly_without_our_symbol_keeps_the_local_memory(place: Any) -> None:
    kernel = compiled("softmax")
    place("amdgcn").write_text(kernel.asm["amdgcn"].rpartition("\n\n\t.globl")[0] + "\n")
    again = triton.compile(source("softmax"), target=TARGET)
    found = read_code_object(again.asm["hsaco"]).kernels["softmax"]
    assert found.dynamic_group_segment_size == kernel.metadata.shared > 0


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("stage", ["source", *STAGES[:-1]])
def test_going_on_from_the_text_of_a_stage(stage: str, arch: str) -> None:
    """With no metadata of the stages before: what is needed of them is in the text."""
    kernel = compiled("softmax", arch)
    backend = AMDBackend(AMDBackend.target_of(arch))
    pipeline = backend.pipeline(backend.parse_options({}))
    rest = pipeline if stage == "source" else pipeline.after(stage)
    metadata: dict[str, Any] = {}
    artefacts = rest.run(kernel.asm[stage], metadata)
    assert metadata["name"] == "softmax"
    assert metadata["shared"] == kernel.metadata.shared
    ours, theirs = (
        read_code_object(binary).kernels["softmax"] for binary in (artefacts["hsaco"], kernel.asm["hsaco"])
    )
    assert ours.code == theirs.code
    assert ours.dynamic_group_segment_size == theirs.dynamic_group_segment_size


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_compiling_a_file(stage: str, tmp_path: Path) -> None:
    file = tmp_path / f"softmax.{stage}"
    file.write_text(compiled("softmax").asm[stage])
    kernel = triton.compile(str(file), target=TARGET)
    assert kernel.asm["hsaco"] == compiled("softmax").asm["hsaco"]


def test_text_that_is_no_module() -> None:
    backend = AMDBackend(TARGET)
    pipeline = backend.pipeline(backend.parse_options({}))
    with pytest.raises(CompilationError, match=r"not a module of Triton's, line 2: .*unregistered dialect"):
        pipeline.after("ttir").run('module {\n  "nobody.knows"() : () -> ()\n}', {})
    for stage in ("llir", "amdgcn"):
        with pytest.raises(CompilationError, match="holds 0 kernels"):
            pipeline.after(stage).run("nothing", {})
    with pytest.raises(CompilationError, match="LLVM cannot compile the given LLVM IR for gfx942"):
        pipeline.after("llir").run("define amdgpu_kernel void @k() {\n nonsense\n}", {})

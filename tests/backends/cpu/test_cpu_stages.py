"""Every stage leaves an artefact that can be read, dumped, overridden and gone on from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import triton
from cpu_kernels import add_constant
from cpu_scripts import Script
from triton import knobs

from triton_porting_kit.errors import CompilationError

STAGES = ("ttir", "structured", "loops", "llir", "obj")

Array = Callable[..., Any]


def launch(array: Array, amount: int = 1, **options: Any) -> tuple[Any, float]:
    """The kernel, and what it added to 0."""
    x = array([0.0] * 40, "float32")
    kernel = add_constant[(2,)](x, 37, AMOUNT=amount, BLOCK=32, **options)
    values = x.numpy()
    assert (values[:37] == values[0]).all()
    assert (values[37:] == 0).all()
    return kernel, float(values[0])


def forget() -> None:
    add_constant.device_caches.clear()


def files(folder: Path) -> dict[str, Path]:
    """The artefact files somewhere under a folder, by stage."""
    return {path.suffix[1:]: path for path in folder.rglob("add_constant.*")}


def test_each_stage_is_in_the_cache_and_in_asm(array: Array, cache: Path) -> None:
    kernel, _ = launch(array)
    found = files(cache)
    assert list(kernel.asm) == ["source", *STAGES]
    for stage in STAGES[:-1]:
        assert kernel.asm[stage] == found[stage].read_text()
    assert "tt.store" in kernel.asm["ttir"]
    assert "tpk.store" in kernel.asm["structured"]
    assert "scf.for" in kernel.asm["loops"]
    assert "define i32 @add_constant" in kernel.asm["llir"]
    assert kernel.asm["obj"] == found["obj"].read_bytes()
    assert kernel.asm["obj"].startswith(b"\x7fELF")
    assert kernel.kernel == kernel.asm["obj"]


def test_dump(array: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    kernel, _ = launch(array)
    found = files(tmp_path / "dump")
    assert set(STAGES) <= set(found)
    for stage in STAGES[:-1]:
        assert found[stage].read_text() == kernel.asm[stage]


def dumped(array: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amount: int) -> dict[str, Path]:
    """The artefacts of the kernel that adds `amount`."""
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_KERNEL_DUMP", "1")
        patch.setenv("TRITON_DUMP_DIR", str(tmp_path / f"dump-{amount}"))
        patch.setenv("TRITON_ALWAYS_COMPILE", "1")
        launch(array, amount)
    forget()
    return files(tmp_path / f"dump-{amount}")


@pytest.mark.parametrize("stage", STAGES)
def test_override_of_each_stage(
    stage: str, array: Array, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    one, two = (dumped(array, tmp_path, monkeypatch, amount) for amount in (1, 2))
    target = tmp_path / "override" / one[stage].parent.name / one[stage].name
    target.parent.mkdir(parents=True)
    shutil.copy(two[stage], target)
    shutil.rmtree(cache)
    cache.mkdir(mode=0o700)

    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    kernel, added = launch(array)
    assert added == 2
    assert kernel.metadata.overridden_stages == [stage]
    if stage in STAGES[1:-1]:
        assert kernel.asm[stage] == two[stage].read_text()
    # A cache hit afterwards: what the user put in is no damage.
    forget()
    assert launch(array)[1] == 2
    assert not [warning for warning in recwarn if "Corrupt" in warning.category.__name__]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("content", [b"rubbish {", b"", b"\xff\xfe\x00"])
def test_broken_override_names_file_and_stage(
    stage: str, content: bytes, array: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = dumped(array, tmp_path, monkeypatch, 1)
    target = tmp_path / "override" / one[stage].parent.name / one[stage].name
    target.parent.mkdir(parents=True)
    target.write_bytes(content)
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    with pytest.raises(CompilationError) as error:
        launch(array)
    assert str(target) in str(error.value)
    assert f"stage {stage}, cannot be used: " in str(error.value)


@pytest.mark.parametrize("stage", STAGES)
def test_ir_override_option(
    stage: str, array: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = dumped(array, tmp_path, monkeypatch, 2)
    kernel, added = launch(array, ir_override=str(two[stage]))
    assert added == 2
    assert kernel.metadata.overridden_stages == [stage]
    forget()
    assert launch(array)[1] == 1


def test_always_compile(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[bool] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **seen: hits.append(seen["cache_hit"]))
    for always in ("0", "0", "1", "1"):
        forget()
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", always)
        assert launch(array)[1] == 1
    assert hits == [False, True, False, False]


def test_store_binary_only(array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    kernel, added = launch(array)
    assert added == 1
    assert list(kernel.asm) == ["source", "obj"]
    assert set(files(cache)) == {"source", "obj", "json"}
    forget()
    assert launch(array)[1] == 1
    # Damage is mended with all the stages between missing.
    files(cache)["obj"].write_bytes(b"")
    forget()
    with pytest.warns(UserWarning, match="made again"):
        assert launch(array)[1] == 1


def test_compile_a_ttir_file(array: Array, tmp_path: Path, recwarn: Any) -> None:
    original, _ = launch(array, amount=3)
    path = tmp_path / "add.ttir"
    path.write_text(original.asm["ttir"])
    for _ in range(2):  # compiled, then from the cache
        kernel = triton.compile(str(path))
        assert list(kernel.asm) == list(STAGES)
        x = array([0.0] * 40, "float32")
        kernel[(2, 1, 1)](x, 37)
        assert (x.numpy() == [3.0] * 37 + [0.0] * 3).all()
    assert not [warning for warning in recwarn if "Corrupt" in warning.category.__name__]


def test_listener_sees_the_stages(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **info: seen.append(info))
    launch(array)
    assert [stage for stage, _ in seen[0]["times"].lowering_stages] == list(STAGES)


def test_stage_inspection_hook(array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def hook(backend: Any = None, stages: Any = None, *rest: Any) -> Any:
        if stages is None:
            return "key", "hash"
        before = stages["ttir"]
        stages["ttir"] = lambda module, metadata: (seen.append(backend.name), before(module, metadata))[1]
        return None

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
    assert launch(array)[1] == 1
    assert seen == ["cpu"]


def test_two_compilations_make_the_same_files(script: Script, cache: Path, tmp_path: Path) -> None:
    source = "add_constant[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8)"
    contents = []
    for run in ("a", "b"):
        script(source, TRITON_CACHE_DIR=str(tmp_path / run), PYTHONHASHSEED=str(len(contents)))
        contents.append({stage: path.read_bytes() for stage, path in files(tmp_path / run).items()})
    assert contents[0] == contents[1]

"""What is recorded of the artefacts as they are made."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.compiler import Pipeline, Stage
from triton_porting_kit.compiler.record import DIGESTS, OVERRIDDEN, add_recorded, digest
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat


def check(artefact: Any) -> None:
    if "bad" in artefact:
        raise ValueError("it is bad")


@pytest.fixture
def stages() -> dict[str, Any]:
    made: dict[str, Any] = {}
    pipeline = Pipeline(
        (
            Stage("ttir", lambda source, metadata: source + "1"),
            Stage("mine", lambda source, metadata: source + "2", check),
            Stage("binary", lambda source, metadata: source.encode()),
        )
    )
    add_recorded(pipeline, made)
    return made


def read_override(path: Any, stage: str) -> Any:
    from triton.compiler import compiler

    return compiler.parse(str(path), stage, None)


def test_digests(stages: dict[str, Any]) -> None:
    metadata: dict[str, Any] = {}
    source: Any = "0"
    for run in stages.values():
        source = run(source, metadata)
    assert source == b"012"
    expected = {"source": "0", "ttir": "01", "mine": "012", "binary": b"012"}
    assert metadata[DIGESTS] == {name: digest(artefact) for name, artefact in expected.items()}
    assert digest("012") == digest(b"012")
    assert metadata[OVERRIDDEN] == []


class Module(str):
    """What stands for a Triton module."""


@pytest.mark.parametrize("stored", [True, False])
def test_digests_of_modules_are_those_of_tritons_files(
    stored: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "is_module", lambda artefact: isinstance(artefact, Module))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    stages: dict[str, Any] = {}
    steps = {"ttir": lambda source, metadata: Module("clean"), "binary": lambda source, metadata: b"code"}
    add_recorded(Pipeline(tuple(Stage(name, run) for name, run in steps.items())), stages)
    metadata: dict[str, Any] = {"hash": "00"}
    folder = compat.kernel_cache_folder("00")
    assert folder is not None
    source: Any = Module("raw")
    for previous, run in zip(("source", "ttir"), stages.values(), strict=True):
        if stored:
            (folder / f"kernel.{previous}").write_text(f"{source}, as a file")
        source = run(source, metadata)
    ending = ", as a file" if stored else ""
    expected = {"source": f"raw{ending}", "ttir": f"clean{ending}", "binary": "code"}
    assert metadata[DIGESTS] == {name: digest(text) for name, text in expected.items()}


def test_a_run_that_starts_in_the_middle(stages: dict[str, Any]) -> None:
    metadata: dict[str, Any] = {}
    stages["mine"]("file", metadata)
    assert list(metadata[DIGESTS]) == ["ttir", "mine"]


def test_an_override_takes_the_place_in_the_record(stages: dict[str, Any], tmp_path: Any) -> None:
    metadata: dict[str, Any] = {}
    path = tmp_path / "kernel.mine"
    path.write_text("my own")
    stages["mine"]("file", metadata)
    assert read_override(path, "mine") == "my own"
    assert metadata[DIGESTS]["mine"] == digest("my own")
    assert metadata[OVERRIDDEN] == ["mine"]
    # Other backends' stages are read as ever.
    path.write_text("other")
    assert read_override(path, "llir") == "other"
    assert read_override(path, "unknown") is None
    assert metadata[DIGESTS]["mine"] == digest("my own")


@pytest.mark.parametrize(
    ("content", "message"), [("bad", "it is bad"), (" \n", "it is empty"), (None, "No such")]
)
def test_a_bad_override_is_named(stages: dict[str, Any], tmp_path: Any, content: Any, message: str) -> None:
    path = tmp_path / "kernel.mine"
    if content is not None:
        path.write_text(content)
    stages["mine"]("file", {})
    with pytest.raises(CompilationError, match=f"kernel.mine, which overrides the stage mine, .*{message}"):
        read_override(path, "mine")


def test_the_binary_is_kept_whatever_triton_stores(stages: dict[str, Any], tmp_path: Any) -> None:
    *others, binary = stages
    assert binary in ("cubin", "hsaco", "json")
    assert binary == "binary"
    assert binary != "cubin"
    assert stages["binary"] is stages[binary]
    assert not set(others) & {"cubin", "hsaco", "json"}
    path = tmp_path / "kernel.binary"
    path.write_bytes(b"\x00\xff")
    stages[binary]("file", {})
    assert read_override(path, "binary") == b"\x00\xff"

"""Pipelines as values: stages are replaced, inserted and cut by name."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.compiler import Pipeline, Stage


def appending(name: str) -> Stage:
    """A stage whose artefact is that of the stage before with its own name behind."""

    def run(source: Any, metadata: Any) -> str:
        metadata.setdefault("ran", []).append(name)
        return f"{source}>{name}"

    return Stage(name, run)


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline(tuple(appending(name) for name in ("a", "b", "c")))


def result(pipeline: Pipeline) -> str:
    return str(list(pipeline.run("in", {}).values())[-1])


def test_stages_run_in_order(pipeline: Pipeline) -> None:
    metadata: dict[str, Any] = {}
    assert pipeline.run("in", metadata) == {"a": "in>a", "b": "in>a>b", "c": "in>a>b>c"}
    assert metadata["ran"] == ["a", "b", "c"] == list(pipeline.names)


def test_replace(pipeline: Pipeline) -> None:
    changed = pipeline.replace("b", appending("x"))
    assert result(changed) == "in>a>x>c"
    assert pipeline.names == ("a", "b", "c")
    assert pipeline.replace("a", appending("a")).names == pipeline.names


@pytest.mark.parametrize(("after", "names"), [("a", "axbc"), ("b", "abxc"), ("c", "abcx")])
def test_insert_after(pipeline: Pipeline, after: str, names: str) -> None:
    assert result(pipeline.insert_after(after, appending("x"))) == ">".join(("in", *names))


@pytest.mark.parametrize(("before", "names"), [("a", "xabc"), ("b", "axbc"), ("c", "abxc")])
def test_insert_before(pipeline: Pipeline, before: str, names: str) -> None:
    assert result(pipeline.insert_before(before, appending("x"))) == ">".join(("in", *names))


def test_cut(pipeline: Pipeline) -> None:
    assert pipeline.until("b").names == ("a", "b")
    assert pipeline.after("b").names == ("c",)
    assert pipeline.after("c").names == ()
    assert pipeline.after("a").run("file", {}) == {"b": "file>b", "c": "file>b>c"}


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.replace("z", appending("x")),
        lambda p: p.insert_after("z", appending("x")),
        lambda p: p.insert_before("z", appending("x")),
        lambda p: p.until("z"),
        lambda p: p.after("z"),
    ],
)
def test_an_unknown_stage_is_named(pipeline: Pipeline, change: Any) -> None:
    with pytest.raises(ValueError, match="no stage 'z'; the stages are a, b, c"):
        change(pipeline)


def test_names_are_unique(pipeline: Pipeline) -> None:
    with pytest.raises(ValueError, match="not unique: a, b, c, a"):
        pipeline.insert_after("c", appending("a"))


def test_for_triton(pipeline: Pipeline) -> None:
    stages: dict[str, Any] = {}
    pipeline.add_to(stages)
    assert list(stages) == ["a", "b", "c"]
    assert stages["b"]("in", {}) == "in>b"

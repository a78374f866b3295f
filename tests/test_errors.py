"""Errors of compilation: each says what to do, and can be sent to another process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.dialect.interpreter import NotInterpreted
from triton_porting_kit.errors import (
    CompilationError,
    CompilerDefect,
    OptionError,
    ResourceError,
    SourceLocation,
)


@pytest.mark.parametrize("cls", [CompilationError, OptionError, NotInterpreted])
def test_an_error_cannot_be_raised_without_a_remedy(cls: Any) -> None:
    with pytest.raises(TypeError, match="remedy"):
        cls("the kernel is wrong")


def test_a_resource_error_cannot_be_raised_without_a_remedy() -> None:
    with pytest.raises(TypeError, match="remedy"):
        ResourceError(2, 1, "cores")  # type: ignore[call-arg]


ERRORS = [
    CompilationError("wrong", remedy="do", operation="tt.load", location=SourceLocation("k.py", 3)),
    OptionError("wrong", remedy="do"),
    ResourceError(2, 1, "cores", "use fewer"),
    CompilerDefect("wrong", None),
    InvalidIR("wrong", "the text"),
    NotInterpreted("wrong", remedy="do"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_text_ends_with_the_remedy(error: CompilationError) -> None:
    assert error.remedy
    assert str(error) == f"{error.problem}\n  what to do: {error.remedy}"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_pickled_whole(error: CompilationError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.__dict__) == (str(error), error.__dict__)


def test_every_class_of_compilation_errors_is_tested() -> None:
    def below(cls: type[CompilationError]) -> set[type[CompilationError]]:
        return {cls}.union(*map(below, cls.__subclasses__()))

    own = {cls for cls in below(CompilationError) if cls.__name__ != "OutOfResources"}
    assert {cls for cls in own if cls.__module__.startswith("triton_porting_kit")} == {*map(type, ERRORS)}

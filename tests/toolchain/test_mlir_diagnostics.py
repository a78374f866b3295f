"""What native code prints of an error, and what is read out of it."""

from __future__ import annotations

import os

import pytest

from triton_porting_kit.errors import SourceLocation
from triton_porting_kit.toolchain import diagnostics


@pytest.mark.parametrize(
    ("text", "message", "place", "operation"),
    [
        (
            "loc(\"k.py\":5:17): error: 'tt.dot' op is wrong\n",
            "'tt.dot' op is wrong",
            ("k.py", 5, 17),
            "tt.dot",
        ),
        ("noise\nk.py:3:4: error: no good\nk.py:9:9: error: later\n", "no good", ("k.py", 3, 4), None),
        ("LLVM ERROR: failed to parse", "failed to parse", None, None),
        ("error: invalid instruction\n\tmov.b32\n", "invalid instruction", None, None),
        ("loc(unknown): error: nowhere", "nowhere", None, None),
    ],
)
def test_first_error(
    text: str, message: str, place: tuple[str, int, int] | None, operation: str | None
) -> None:
    found = diagnostics.first_error(text)
    assert found is not None
    assert found.message == message
    assert found.place == (None if place is None else SourceLocation(*place))
    assert found.operation == operation


def test_the_line_that_is_quoted() -> None:
    found = diagnostics.first_error("error: invalid instruction\n\tmov.b32 v1, v1\n\t^\n")
    assert found is not None
    assert found.line == "mov.b32 v1, v1"


def test_no_error() -> None:
    assert diagnostics.first_error("warning: all is well\n") is None


def test_what_is_printed_while_a_function_runs(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        os.write(2, b"said in vain\n")
        raise RuntimeError("no text")

    assert diagnostics.stderr_of(fail) == "said in vain\n"
    os.write(2, b"heard again\n")
    assert capfd.readouterr().err == "heard again\n"

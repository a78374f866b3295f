"""What can be changed in Python, against lists written by hand."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest

from triton_porting_kit.conformance.mutants import sources
from triton_porting_kit.conformance.mutants.mutation import PYTHON, Mutation
from triton_porting_kit.conformance.mutants.python_sites import is_same_code, python_mutations


def changed_lines(text: str) -> list[tuple[int, str, str]]:
    """Of each mutation: its line, its operator, and the line with the change."""
    source = textwrap.dedent(text).encode()
    found = []
    for mutation in python_mutations("compiler/x.py", source):
        after = mutation.apply(source).decode().splitlines()
        found.append((mutation.line, mutation.operator, after[mutation.line - 1].strip()))
    return sorted(found)


def test_a_function() -> None:
    assert changed_lines(
        '''
        def clamp(value, low, high=7):
            """Not more than 3 lines."""
            if value < low and not high:
                value = low
            self.seen += 1
            return -value if value is None else value * 2
        '''
    ) == [
        (2, "constant", "def clamp(value, low, high=8):"),
        (4, "comparison", "if value <= low and not high:"),
        (4, "condition", "if False:"),
        (4, "condition", "if True:"),
        (4, "logic", "if value < low or not high:"),
        (4, "sign", "if value < low and  high:"),
        (5, "statement", "pass"),
        (6, "arithmetic", "self.seen -= 1"),
        (6, "constant", "self.seen += 2"),
        (6, "statement", "pass"),
        (7, "arithmetic", "return -value if value is None else value + 2"),
        (7, "comparison", "return -value if value is not None else value * 2"),
        (7, "condition", "return -value if False else value * 2"),
        (7, "condition", "return -value if True else value * 2"),
        (7, "constant", "return -value if value is None else value * 3"),
        (7, "sign", "return value if value is None else value * 2"),
    ]


def test_operators_behind_parentheses_and_comments() -> None:
    assert changed_lines(
        """
        x = (
            (a)  # not <
            < (b + c)
        )
        """
    ) == [(4, "arithmetic", "< (b - c)"), (4, "comparison", "<= (b + c)")]


def test_statements_that_can_be_left_out() -> None:
    assert [line for line, operator, _ in changed_lines(
        """
        def f(a):
            fresh = g(a)
            a = g(a)
            self.a = fresh
            h(a)
            for x in a:
                break
            raise Wrong(a + 1)
        """
    ) if operator == "statement"] == [4, 5, 6, 8, 9]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '"""Of 3 lines."""',
        "def f(a: int | None = None) -> Foo | Bar: ...",
        "x: Literal[3]",
        "assert a < 3",
        "def __repr__(self): return 3 + 4",
        "if TYPE_CHECKING:\n    x = 3 + 4",
        "y = f'{3 + 4}'",
        "isinstance(x, int | Foo)",
        "name = 'text'",
        "__all__ = [3]",
    ],
)
def test_what_is_no_behaviour(text: str) -> None:
    assert [change for change in changed_lines(text) if change[1] != "statement"] == []


def test_that_something_is_raised_is_behaviour() -> None:
    assert changed_lines("raise Wrong(f'{x}', 3 + 4)") == [(1, "statement", "pass")]


def test_every_mutation_of_the_kit_is_python() -> None:
    contents = {path: file.read_bytes() for path, file in sources.files((PYTHON,)).items()}
    every = sources.mutations(contents)
    assert len(every) > 5000
    assert len({mutation.name for mutation in every}) == len(every)
    for mutation in random.Random(0).sample(every, 100):
        after = mutation.apply(contents[mutation.path])
        assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(contents[mutation.path])), mutation.name
        assert mutation.lines[0] <= mutation.line <= mutation.lines[1], mutation.name


def test_the_same_code() -> None:
    source = b"def f(a):\n    1 + 2\n    return a\n"  # which Python leaves out
    found = python_mutations("compiler/x.py", source)
    assert [mutation.operator for mutation in found] == ["statement", "arithmetic", "constant", "constant"]
    assert all(is_same_code(mutation, source) for mutation in found)
    other = Mutation("compiler/x.py", PYTHON, "name", 31, 32, "b", 3, (3, 3))
    assert not is_same_code(other, source)


def test_names_of_what_runs_at_import() -> None:
    source = b"DEEPEST = 8\n\nclass A:\n    WIDTH = 4\n\n    def f(self, n=3):\n        return n + 1\n"
    names = {m.line: m.names for m in python_mutations("compiler/x.py", source) if m.operator == "constant"}
    assert names == {1: ("DEEPEST",), 4: ("WIDTH",), 6: ("f",), 7: ()}


def test_a_sample_is_the_beginning_of_a_larger_one() -> None:
    source = b"\n".join(b"x%d = %d + %d" % (n, n, n) for n in range(50))
    every = python_mutations("compiler/x.py", source)
    once, reversed_, other = (
        sources.sample(every, 1),
        sources.sample(every[::-1], 1),
        sources.sample(every, 2),
    )
    assert once == reversed_
    assert once != other
    assert sorted(m.name for m in once) == sorted(m.name for m in every)


def test_what_is_of_other_backends_is_left_out() -> None:
    chosen = sources.files()
    assert "compiler/loops/tiles/access.py" in chosen
    assert "driver/host/native/pool.cpp" in chosen
    assert not [path for path in chosen if path.startswith(("driver/hip", "driver/virtual", "compiler/cpp"))]

"""No test passes or fails by chance, or by how fast the machine is: what the text of tests must not contain."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "perf_counter_ns", "time"}
"""Those of the processor are left out: they stand still while others run."""
HANG_SECONDS = 30
"""What takes longer than this hangs, on a busy machine, too."""
PROMISED = "PROMISED_SECONDS"
"""The name of a limit that the docs promise, so that tests hold it on a busy machine, too."""
STOPPED = {"refused", "in_child", "FolderRendezvous", "TcpRendezvous", "start"}
"""Functions whose time is always used up: what they wait for never comes."""

Finds = Callable[[ast.AST], bool]


def _name(node: ast.AST) -> str:
    """The last name of what is called or read, such as ``monotonic`` of ``time.monotonic()``."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _number(node: ast.AST | None) -> float | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None


def reads_a_clock(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and _name(n) in CLOCKS and not n.args for n in ast.walk(node))


def an_upper_limit_on_a_clock(node: ast.AST) -> bool:
    """``time.monotonic() - start < 2``: a busy machine takes longer."""
    return (
        isinstance(node, ast.Compare)
        and reads_a_clock(node.left)
        and isinstance(node.ops[0], ast.Lt | ast.LtE)
        and (limit := _number(node.comparators[0])) is not None
        and limit < HANG_SECONDS
    )


def a_short_timeout(node: ast.AST) -> bool:
    """``run(command, timeout=5)`` and ``thread.join(2)``, where the other side is to answer in time."""
    if not isinstance(node, ast.Call) or _name(node) in STOPPED:
        return False
    limits = [_number(keyword.value) for keyword in node.keywords if keyword.arg == "timeout"]
    return any(limit is not None and 0 < limit < HANG_SECONDS for limit in limits)


def a_short_deadline(node: ast.AST) -> bool:
    """``deadline = time.monotonic() + 5``."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and isinstance(node.left, ast.Call)
        and reads_a_clock(node.left)
        and (limit := _number(node.right)) is not None
        and 1 < limit < HANG_SECONDS
    )


def examples_on_a_clock(node: ast.AST) -> bool:
    """A deadline of Hypothesis."""
    return isinstance(node, ast.keyword) and node.arg == "deadline" and _number(node.value) is not None


def numbers_without_a_seed(node: ast.AST) -> bool:
    """``np.random.default_rng()``, ``random.Random()``, ``os.urandom(9)``."""
    if not isinstance(node, ast.Call):
        return False
    return _name(node) == "urandom" or (_name(node) in ("default_rng", "Random") and not node.args)


def any_free_port(node: ast.AST) -> bool:
    """``bind(("127.0.0.1", 0))`` to learn a port: others get it before it is used."""
    if not isinstance(node, ast.Call) or _name(node) != "bind" or not node.args:
        return False
    place = node.args[0]
    return isinstance(place, ast.Tuple) and _number(place.elts[-1]) == 0


RULES: list[Finds] = [
    an_upper_limit_on_a_clock,
    a_short_timeout,
    a_short_deadline,
    examples_on_a_clock,
    numbers_without_a_seed,
    any_free_port,
]


class _Named(ast.NodeTransformer):
    """Puts the numbers of a module in the places of their names."""

    def __init__(self, module: ast.Module) -> None:
        self._numbers = {
            _name(place.targets[0]): place.value
            for place in module.body
            if isinstance(place, ast.Assign) and _number(place.value) is not None
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == PROMISED:
            return node
        return self._numbers.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def found(rules: Sequence[Finds], text: str) -> Iterator[str]:
    """The lines on which rules find something, and what."""
    module = ast.parse(text)
    for node in ast.walk(_Named(module).visit(module)):
        for rule in rules:
            if rule(node):
                yield f"{node.lineno}: {rule.__name__}"  # type: ignore[attr-defined]


def test_no_test_has_any_of_them() -> None:
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert len(files) > 300
    lines = {path: list(found(RULES, path.read_text("utf-8"))) for path in files}
    assert [f"{path.relative_to(TESTS)}:{line}" for path in files for line in lines[path]] == []


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (an_upper_limit_on_a_clock, "time.monotonic() - start < 2", "time.monotonic() - start >= 2"),
        (an_upper_limit_on_a_clock, "LIMIT = 9; time.time() < LIMIT", "LIMIT = 60; time.time() < LIMIT"),
        (a_short_timeout, "run(command, timeout=5)", "run(command, timeout=60)"),
        (a_short_timeout, "Barrier(2, timeout=9.5)", "future.result(timeout=0)"),
        (a_short_deadline, "time.monotonic() + 5", "time.monotonic() + 60"),
        (examples_on_a_clock, "settings(deadline=200)", "settings(deadline=None)"),
        (numbers_without_a_seed, "np.random.default_rng()", "np.random.default_rng(0)"),
        (numbers_without_a_seed, "os.urandom(4)", "random.Random(4)"),
        (any_free_port, "found.bind(('127.0.0.1', 0))", "found.bind(('', port))"),
    ],
)
def test_what_rules_find(rule: Finds, bad: str, good: str) -> None:
    assert list(found([rule], bad)) == [f"1: {rule.__name__}"]
    assert list(found(RULES, good)) == []

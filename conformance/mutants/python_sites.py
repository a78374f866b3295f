"""The mutations of Python sources.

This uses `ast` instead of a library: cosmic-ray and mutmut come with their own test runner, database and parser, do not
delete statements, and write to the installed files.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from functools import cached_property

from triton_porting_kit.conformance.mutants.mutation import PYTHON, Mutation
from triton_porting_kit.conformance.mutants.no_behaviour import is_no_behaviour

_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
_COMPARISON: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_HEADED = (*_FUNCTIONS[:2], ast.ClassDef, ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)


def python_mutations(path: str, source: bytes) -> list[Mutation]:
    """All mutations of a file."""
    return list(_Sites(path, source))


def is_same_code(mutation: Mutation, source: bytes) -> bool:
    """Whether a mutated file compiles to the same bytecode as the original, so that no check can distinguish them."""
    return _code(mutation.apply(source)) == _code(source)


class _Sites:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._tree = ast.parse(source)
        self._parents = {
            child: parent for parent in ast.walk(self._tree) for child in ast.iter_child_nodes(parent)
        }

    def __iter__(self) -> Iterator[Mutation]:
        for node in ast.walk(self._tree):
            if not is_no_behaviour(node, self._parents):
                for operator, start, end, text in self._changes(node):
                    yield self._mutation(node, operator, start, end, text)

    # --- what can be changed -------------------------------------------------------------------------

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.BinOp():
                token, instead = _BINARY.get(type(node.op), ("", ""))
                if token:
                    yield self._between("arithmetic", node.left, node.right, re.escape(token), instead)
            case ast.AugAssign():
                token, instead = _BINARY.get(type(node.op), ("", ""))
                if token:
                    yield self._between(
                        "arithmetic", node.target, node.value, re.escape(token) + "=", instead + "="
                    )
                yield self._dropped(node)
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                    token, instead = _COMPARISON[type(op)]
                    token = token if token[0].isalpha() else re.escape(token)
                    yield self._between("comparison", left, right, token, instead)
            case ast.BoolOp():
                token, instead = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield self._between("logic", left, right, token, instead)
            case ast.UnaryOp() if not isinstance(node.op, ast.UAdd):
                begin = self._start(node)
                yield ("sign", begin, begin + (3 if isinstance(node.op, ast.Not) else 1), "")
            case ast.Constant(value=bool() as value):
                yield ("constant", *self._span(node), str(not value))
            case ast.Constant(value=int() | float() as value):
                hexadecimal = self._source[self._start(node) :][:2] == b"0x" and isinstance(value, int)
                yield ("constant", *self._span(node), f"{value + 1:#x}" if hexadecimal else repr(value + 1))
            case ast.If() | ast.IfExp():
                for always in ("True", "False"):
                    yield ("condition", *self._span(node.test), always)
            case ast.While():
                yield ("condition", *self._span(node.test), "False")
            case ast.comprehension():
                for test in node.ifs:
                    for always in ("True", "False"):
                        yield ("condition", *self._span(test), always)
            case ast.match_case(guard=ast.expr() as guard):
                for always in ("True", "False"):
                    yield ("condition", *self._span(guard), always)
            case ast.Expr() | ast.Raise() | ast.Break() | ast.Continue() | ast.Delete():
                yield self._dropped(node)
            case ast.Assign() if self._can_be_dropped(node):
                yield self._dropped(node)

    def _dropped(self, node: ast.AST) -> tuple[str, int, int, str]:
        return ("statement", *self._span(node), "pass")

    def _can_be_dropped(self, node: ast.Assign) -> bool:
        """Whether the code still has its names bound without an assignment: it assigns an attribute or an element, or a
        variable that already has a value."""
        targets = [part for target in node.targets for part in ast.walk(target) if isinstance(part, ast.expr)]
        if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in targets):
            return True
        function = self._function(node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        arguments = function.args
        known = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        known |= {
            other.id
            for other in ast.walk(function)
            if isinstance(other, ast.Name)
            and isinstance(other.ctx, ast.Store)
            and other.lineno < node.lineno
            and self._function(other) is function
        }
        return all(part.id in known for part in targets if isinstance(part, ast.Name))

    def _between(
        self, operator: str, left: ast.expr, right: ast.expr, token: str, instead: str
    ) -> tuple[str, int, int, str]:
        """The mutation of an operator between two operands, skipping parentheses and comments."""
        begin, end = self._span(left)[1], self._start(right)
        gap = self._source[begin:end]
        plain = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), gap)
        found = re.search(token.encode(), plain)
        assert found is not None, f"{self._path}:{left.lineno}: there is no {token!r} in {gap!r}"
        return operator, begin + found.start(), begin + found.end(), instead

    # --- where it is ---------------------------------------------------------------------------------

    @cached_property
    def _offsets(self) -> list[int]:
        """The byte offset of each line."""
        found, at = [0], 0
        for line in self._source.split(b"\n"):
            at += len(line) + 1
            found.append(at)
        return found

    def _start(self, node: ast.expr) -> int:
        return self._span(node)[0]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        where = vars(node)
        return (
            self._offsets[where["lineno"] - 1] + where["col_offset"],
            self._offsets[where["end_lineno"] - 1] + where["end_col_offset"],
        )

    def _function(self, node: ast.AST) -> ast.AST | None:
        """The innermost function in whose body a node is evaluated: defaults and decorators are outside of it."""
        child, parent = node, self._parents.get(node)
        while parent is not None:
            if isinstance(parent, _FUNCTIONS):
                body = parent.body if isinstance(parent.body, list) else [parent.body]
                if child in body:
                    return parent
            child, parent = parent, self._parents.get(parent)
        return None

    def _mutation(self, node: ast.AST, operator: str, start: int, end: int, text: str) -> Mutation:
        line = self._source.count(b"\n", 0, start) + 1
        statement: ast.AST = node
        while not isinstance(statement, (ast.stmt, ast.match_case)):
            statement = self._parents[statement]
        lines = self._head(statement, line)
        names = () if self._function(node) else tuple(sorted(self._given(node)))
        return Mutation(self._path, PYTHON, operator, start, end, text, line, lines, names)

    def _head(self, statement: ast.AST, line: int) -> tuple[int, int]:
        if isinstance(statement, ast.match_case):
            return line, line
        where = vars(statement)
        first, last = where["lineno"], where["end_lineno"]
        if isinstance(statement, _HEADED):
            body = statement.cases if isinstance(statement, ast.Match) else statement.body
            begin = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            last = max(first, begin.lineno - 1)
            first = min([first, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        return first, last

    def _given(self, node: ast.AST) -> set[str]:
        """The names that module-level code assigns, or the functions whose defaults it defines."""
        found: set[str] = set()
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.Module):
            match at:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.add(at.name)
                case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                    targets = at.targets if isinstance(at, ast.Assign) else [at.target]
                    found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                case ast.ClassDef():
                    found = found or {at.name}
            at = self._parents.get(at)
        return found


def _code(source: bytes) -> object:
    """The bytecode of a source without positions, comparable with `==`."""
    return _plain(compile(source, "mutant", "exec", dont_inherit=True, optimize=0))


def _plain(code: object) -> object:
    if not isinstance(code, types.CodeType):
        return type(code).__name__, repr(code)
    return (
        code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable, code.co_flags,
        code.co_argcount, tuple(_plain(value) for value in code.co_consts),
    )  # fmt: skip

"""What is not mutated because it is no behaviour: stated as rules about the syntax tree, and applied to all sources."""

from __future__ import annotations

import ast
from collections.abc import Mapping

RULES = (
    "docstrings and other texts (strings are not mutated at all: nearly all are names, whose change everything "
    "notices, so that they would flatter the score)",
    "what stands in an f-string",
    "annotations of types, types joined by `|`, what is imported for type checkers only",
    "what an exception is made with (that it is raised is behaviour), and `assert`, which Python can leave out",
    "`__repr__` and `__str__`, and the values of `__all__`, `__slots__` and `__version__`",
    "calls of `logging` and `warnings`",
)

_TYPES = frozenset(
    {"int", "str", "float", "bool", "bytes", "list", "dict", "tuple", "set", "object", "type", "None"}
)
_TALKING = frozenset({"logging", "warnings", "logger", "log"})
_SILENT = frozenset({"__repr__", "__str__"})
_NAMES = frozenset({"__all__", "__slots__", "__version__"})


def is_no_behaviour(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a node, or anything that it is in, is none by `RULES`."""
    child: ast.AST | None = None
    at: ast.AST | None = node
    while at is not None:
        if _is_none(at, child):
            return True
        child, at = at, parents.get(at)
    return False


def _is_none(node: ast.AST, child: ast.AST | None) -> bool:
    """Whether `node` is none, or its part `child` is."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in _SILENT or (child is not None and child is node.returns)
        case ast.arg() | ast.AnnAssign():
            return child is not None and child is node.annotation
        case ast.Raise():
            return child is not None
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.BinOp(op=ast.BitOr()):
            return _is_type(node.left) or _is_type(node.right)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _NAMES
        case ast.Call():
            return _talks(node.func)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _talks(node.value.func)


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _TYPES or (name[:1].isupper() and not name.isupper())
        case ast.Subscript():
            return _is_type(node.value)
    return False


def _talks(function: ast.expr) -> bool:
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _TALKING

"""Code that is not mutated because it has no observable behaviour: rules about the syntax tree, for all sources."""

from __future__ import annotations

import ast
from collections.abc import Mapping

RULES = (
    "docstrings and other strings: nearly all strings are names, and every check would notice a changed name, which "
    "would inflate the score",
    "the contents of f-strings",
    "type annotations, unions of types with `|`, imports for type checkers only",
    "the arguments of a raised exception (that it is raised is behaviour), and `assert`, which Python can disable",
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
    """Whether `RULES` exclude a node or any node that contains it."""
    child: ast.AST | None = None
    at: ast.AST | None = node
    while at is not None:
        if _is_none(at, child):
            return True
        child, at = at, parents.get(at)
    return False


def _is_none(node: ast.AST, child: ast.AST | None) -> bool:
    """Whether the rules exclude `node`, or its direct child `child`."""
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

"""The state of writing one loops module: names, types, source comments, and the support text in use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from triton_porting_kit.compiler.cpp import names
from triton_porting_kit.compiler.cpp.dialects import Dialect
from triton_porting_kit.compiler.cpp.header import CppHeader, HeaderUse
from triton_porting_kit.compiler.cpp.support import Support
from triton_porting_kit.compiler.cpp.types import CppType, cast, parse
from triton_porting_kit.compiler.source_comments import SourceComments
from triton_porting_kit.errors import CompilationError

_LITERAL = re.compile(r"(?:splat_\w+\()?\(u(?:8|16|32|64)\)(-?\d+)u?\)?")
_PARAMETER = "parameter "

TERMINATORS = ("scf.yield", "scf.condition")


class Emitter:
    """Writes the body of one function in a dialect.

    `comments` are the source comments of the loops artefact. `write` writes one operation (`operations.write`).
    `header` names the intrinsics.
    """

    def __init__(
        self,
        dialect: Dialect,
        comments: SourceComments,
        write: Callable[[Emitter, Any], None],
        header: CppHeader | None = None,
    ) -> None:
        self.dialect = dialect
        self.support = Support(dialect)
        self._write = write
        self.intrinsics = HeaderUse(header or CppHeader())
        self.lines: list[str] = []
        self.spaces: dict[Any, str] = {}
        """The address space of each pointer that is not in the global one."""
        self.buffers = False
        """Whether pointers are buffers with offsets."""
        self.argument_block: Any = None
        self._comments = comments
        self._names: dict[Any, str] = {}
        self._parts: dict[Any, list[str]] = {}
        self._counts: dict[str, int] = {}
        self._depth = 1
        self._arguments: set[str] = set()
        self._parameter = ""
        """The kernel parameter that the next load reads."""

    # --- text ----------------------------------------------------------------------------------------------

    def statement(self, text: str) -> None:
        """Write a line at the current depth."""
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def braces(self, header: str) -> Iterator[None]:
        """A statement with a body."""
        if header == "else" and self.lines[-1].strip() == "}":
            self.lines[-1] += " else {"
        else:
            self.statement(f"{header} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.statement("}")

    def block(self, block: Any) -> None:
        """Write all operations of a block but its terminator, with the source comments between them."""
        for view in block.operations:
            operation = view.operation
            if operation.name in TERMINATORS:
                continue
            for comment in self._comments.before(operation):
                if comment.startswith(_PARAMETER):
                    self._parameter = comment.removeprefix(_PARAMETER)
                else:
                    self.statement(f"// {comment}")
            self._write(self, operation)

    # --- names ---------------------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """A unique name."""
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{self._counts[prefix]}"

    def _argument_name(self, parameter: str) -> str:
        """A unique name for a parameter's value.

        Different parameters may have the same spelling: ``D.shape.0``, ``D_shape_0``.
        """
        plain = name = names.plain(f"arg_{parameter}")
        number = 1
        while name in self._arguments:
            number += 1
            name = f"{plain}_{number}"
        self._arguments.add(name)
        return name

    def define(self, value: Any, text: str) -> None:
        """Record the text of a value: a variable's name or a literal."""
        self._names[value] = text

    def declare(self, value: Any, expression: str) -> None:
        """Write a constant that holds a value."""
        if self._parameter and value.owner.operation.name == "llvm.load":
            name, self._parameter = self._argument_name(self._parameter), ""
        else:
            name = self.fresh("v")
        type = self.type_of(value)
        self.statement(f"const {type.name} {name} = {expression};")
        self.define(value, name)

    def define_parts(self, value: Any, names: list[str]) -> None:
        """Record the variables that hold the members of a struct."""
        self._parts[value] = names

    def parts(self, value: Any) -> list[str]:
        return self._parts[value]

    def operands(self, operation: Any) -> list[str]:
        """The text of an operation's operands."""
        return [self._names[value] for value in operation.operands]

    def name_of(self, value: Any) -> str:
        """The text of a value."""
        return self._names[value]

    def literal_of(self, text: str) -> int | None:
        """The number that an integer literal, or a splat of one, denotes; None for other text."""
        found = _LITERAL.fullmatch(text)
        return int(found[1]) if found else None

    # --- types ---------------------------------------------------------------------------------------------

    def type_of(self, value: Any) -> CppType:
        """The type of a value. Raises `CompilationError` if there is none."""
        text = str(value.type)
        type = parse(text)
        lacking = f"the type {text}" if type is None else self.dialect.lacks(type)
        if type is None or lacking:
            owner = value.owner
            operation = owner if hasattr(owner, "name") else owner.owner
            raise self.unsupported(getattr(operation, "operation", operation), str(lacking))
        if type.element == "ptr" and value in self.spaces:
            type = replace(type, space=self.spaces[value])
        self.support.use(type)
        return type

    def space_of(self, value: Any) -> str:
        """The address space of a pointer, or of those of a vector; empty for the global one."""
        return self.spaces.get(value, "")

    def result_type(self, operation: Any) -> CppType:
        return self.type_of(operation.results[0])

    def use(self, type: CppType) -> CppType:
        """A type, which is then defined in the output."""
        self.support.use(type)
        return type

    def function(self, name: str, *types: CppType, **words: str) -> str:
        """The name of a support function for given types, as `Support.function`."""
        return self.support.function(name, *types, **words)

    def converted(self, value: str, type: CppType) -> str:
        """A conversion that preserves values: of a scalar, or of each lane."""
        return self.dialect.convert(value, self.use(type))

    def reinterpreted(self, value: str, type: CppType) -> str:
        """The same bits as a vector or integer of the same size."""
        return self.dialect.reinterpret(value, self.use(type))

    def bits_as(self, value: str, target: CppType, source: CppType) -> str:
        """The same bits as any type of the same size."""
        if target == source:
            return value
        if "ptr" in (target.element, source.element):
            return cast(target.name, value)
        return f"{self.function('as', target, source)}({value})"

    # --- attributes ----------------------------------------------------------------------------------------

    def has(self, operation: Any, name: str) -> bool:
        return name in operation.attributes

    def integer(self, operation: Any, name: str, default: int | None = None) -> int:
        """An integer attribute; `default` where it is absent."""
        if name not in operation.attributes:
            if default is None:
                raise self.unsupported(operation, f"the operation without its attribute {name}")
            return default
        return int(str(operation.attributes[name]).partition(" ")[0])

    def numbers(self, operation: Any, name: str) -> list[int]:
        """An array attribute of integers (``array<i64: 1, 2>``)."""
        text = str(operation.attributes[name])
        return [int(number) for number in re.findall(r"-?\d+", text.partition(":")[2])]

    def text(self, operation: Any, name: str) -> str:
        """A string attribute, or the name of a symbol reference."""
        return str(operation.attributes[name]).strip('"@')

    def type_text(self, operation: Any, name: str) -> str:
        return str(operation.attributes[name])

    # --- the rest ------------------------------------------------------------------------------------------

    def unsupported(self, operation: Any, what: str, remedy: str = "") -> CompilationError:
        """The error for a part of the kernel that cannot be written in the dialect."""
        language = self.dialect.title
        return CompilationError(
            f"the {language} emission cannot write {what}",
            operation=operation.name,
            location=self._comments.location(operation),
            remedy=remedy
            or "make the loops for a target without special instructions, CpuTarget.portable(); if they already "
            f"are, {language} has no word for this or it is a gap of the emission: please report the kernel",
        )

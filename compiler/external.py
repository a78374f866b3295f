"""Passing a kernel to an external program, such as a vendor's own ``vendor-opt``.

The program gets the structured form, the linalg form or TTIR as text, and returns text or a binary. If it rejects the
kernel, its messages name a position in that text, or a location from it. Both are mapped to the kernel's source line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triton_porting_kit.compiler import commands
from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.errors import CompilationError, SourceLocation
from triton_porting_kit.toolchain import compat

_ERROR = re.compile(
    r"^(?:(?P<program>[\w./+-]+): )?"
    r"(?P<place>loc\(.*\)|[^\s:][^:\n]*:\d+(?::\d+)?|<[^>\n]*>:\d+(?::\d+)?)"
    r":? *(?:fatal )?error: *(?P<message>.*)$",
    re.MULTILINE,
)
_BARE_ERROR = re.compile(
    r"^(?:[\w./+-]+: )?(?:fatal )?error: *(?P<message>.*)$", re.MULTILINE | re.IGNORECASE
)
_FILE_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")
_CALL = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): note: called from", re.MULTILINE)
_NAMED_OPERATION = re.compile(r"'([A-Za-z_]\w*(?:\.\w+)+)'")
_OPERATION = re.compile(r'^\s*(?:%[^=]*= *)?"?([A-Za-z_]\w*(?:\.\w+)+)"?')
_ALIAS = re.compile(r"^(#loc\d*) = (loc\(.*\))\s*$", re.MULTILINE)


@dataclass(frozen=True)
class _Diagnosis:
    """The first error of a program's messages."""

    message: str
    operation: str | None = None
    location: SourceLocation | None = None


@functools.cache
def tool_version(command: tuple[str, ...], *, timeout: float = 30.0) -> str:
    """The first line that ``PROGRAM --version`` prints; the first argument of `command` is the program.

    Use it in `PipelineBackend.version`, so that kernels compiled by another release of the program are not reused. The
    result is cached per process. Raises `CompilationError` if the program cannot be run or fails.
    """
    finished = commands.run(
        (command[0], "--version"), "", input_name="none", output_name="none", timeout=timeout,
        purpose="asking for a version",
    )  # fmt: skip
    text = finished.output.decode(errors="replace").strip()
    if finished.status != 0:
        raise CompilationError(
            f"{command[0]} --version ended with status {finished.status}: {finished.diagnostics.strip()}",
            remedy="let the program print its version and end with status 0, or do not ask for it in `version()`",
        )
    return text.partition("\n")[0]


def run_tool(
    command: Sequence[str],
    source: object,
    *,
    timeout: float = 300.0,
    suffix: str = ".mlir",
    check: Callable[[bytes], None] | None = None,
    remedy: str | None = None,
) -> bytes:
    """Run an external program on an artefact and return its standard output, or the file that it wrote.

    `command` is the program and its arguments. ``{input}`` in an argument is the path of a private file with the text
    of `source`, whose name ends with `suffix`; without it, the text is passed on standard input. ``{output}`` is a path
    for the program to write to; without it, the result is its standard output. The program runs without a shell, in an
    empty folder that is removed afterwards, for at most `timeout` seconds. `source` is an artefact of a pipeline or a
    text: the structured form, or Triton IR, which is passed in MLIR's generic form. Both hold the kernel's locations.

    Raises `CompilationError` in these cases:

    - The program prints ``FILE:LINE:COLUMN: error: MESSAGE`` or ``loc(...): error: MESSAGE``: with the message, the
      operation and the kernel's line.
    - The program is missing, crashes, takes too long or writes nothing.
    - `check`, which is called with the output, raises.

    `remedy` tells the kernel's author what to do about an error.
    """
    text = source if isinstance(source, str) else _text_of(source)
    finished = commands.run(
        command, text, input_name=f"kernel{suffix}", output_name="kernel.out", timeout=timeout,
        purpose="handing the kernel over",
    )  # fmt: skip
    if finished.status == 0:
        _check(command[0], check, finished.output)
        return finished.output
    messages = finished.diagnostics.strip() or finished.output.decode(errors="replace").strip()
    found = _diagnose(messages, text, finished.input_name)
    if found is None:
        said = f":\n{messages}" if messages else " without a message"
        raise CompilationError(
            f"{command[0]} ended with status {finished.status}{said}",
            remedy=remedy
            or "run the program by hand on what `tpk compile --emit` writes of the stage before it",
        )
    raise CompilationError(
        f"{command[0]}: {found.message}\nwhat it said:\n{messages}",
        operation=found.operation,
        location=found.location,
        remedy=remedy or "write this line without what the program rejects, or extend the program",
    )


def _check(program: str, check: Callable[[bytes], None] | None, output: bytes) -> None:
    if check is None:
        return
    try:
        check(output)
    except Exception as error:
        raise CompilationError(
            f"{program} succeeded, but what it wrote is not valid: {error}",
            remedy="this is a defect of that program or of its options: run it by hand on what "
            "`tpk compile --emit` writes of the stage before it",
        ) from error


def _text_of(source: object) -> str:
    """The text of an artefact with locations. Triton's modules print without them except in generic form."""
    return compat.generic_text(source) if hasattr(source, "str_nodebug") else str(source)


def _diagnose(messages: str, text: str, input_name: str) -> _Diagnosis | None:
    found = _ERROR.search(messages)
    if found is None:
        bare = _BARE_ERROR.search(messages)
        return _Diagnosis(bare["message"], _named(bare["message"])) if bare else None
    message, place = found["message"].strip(), found["place"]
    named = _named(message)
    if place.startswith("loc("):
        return _Diagnosis(message, named, source_location(place))
    position = _FILE_LINE.fullmatch(place)
    assert position is not None
    line = int(position["line"])
    calls = [f'"{m["file"]}":{m["line"]}:{m["column"]}' for m in _CALL.finditer(messages, found.end())]
    # With calls, "-" is not the input but a text that the kit expanded an operation to, at the line of the call.
    if _is_input(position["file"], input_name) and not (position["file"] == "-" and calls):
        operation, location = _in_text(text, line)
        return _Diagnosis(message, named or operation, location)
    # The program printed a location from the text, which is a kernel location. If it lies in Triton's library, the
    # notes that follow say where it was called from.
    here = f'"{position["file"]}":{line}:{position["column"] or 0}'
    return _Diagnosis(message, named, source_location(" at ".join([here, *calls])))


def _named(message: str) -> str | None:
    """The operation that a message quotes, in MLIR's style."""
    found = _NAMED_OPERATION.search(message)
    return found[1] if found else None


def _is_input(file: str, input_name: str) -> bool:
    """Whether the file of a diagnostic is the text that the program was given."""
    short = input_name.rpartition("/")[2]
    return file in (input_name, short, "<stdin>", "-", "<unknown>", "stdin") or file.endswith(f"/{short}")


def _in_text(text: str, line: int) -> tuple[str | None, SourceLocation | None]:
    """The operation at a line of MLIR text, and the kernel line of its location.

    An operation with regions has its location after them: on the line where the brackets are closed again.
    """
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return None, None
    found = _OPERATION.match(lines[line - 1])
    aliases = dict(_ALIAS.findall(text))
    depth = 0
    for current in lines[line - 1 :]:
        code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', current)
        depth += sum(code.count(c) for c in "{([") - sum(code.count(c) for c in "})]")
        if depth <= 0:
            location = _location_in(current, aliases)
            return (found[1] if found else None), location
    return (found[1] if found else None), None


def _location_in(line: str, aliases: dict[str, str]) -> SourceLocation | None:
    start = line.rfind(" loc(")
    return source_location(_resolved(line[start:], aliases)) if start >= 0 else None


def _resolved(location: str, aliases: dict[str, str], depth: int = 0) -> str:
    """A location with its aliases expanded."""
    if depth > 20:
        return location
    return re.sub(r"#loc\d*", lambda name: _resolved(aliases.get(name[0], ""), aliases, depth + 1), location)

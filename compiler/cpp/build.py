"""Building emitted text with a vendor's compiler, and mapping its errors to the kernel's lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triton_porting_kit.compiler import commands
from triton_porting_kit.compiler.cpp.dialects import CPP, OPENCL, Dialect
from triton_porting_kit.compiler.source_comments import SourceComments
from triton_porting_kit.errors import CompilationError

OUTPUT_NAME = "kernel.so"

_SOURCE = r"kernel\.(?:cpp|cl?)"
_ERROR = re.compile(
    rf"^(?:.*/)?{_SOURCE}[:(](\d+)(?:[:,]\d+)?\)?: *(?:fatal )?error[^:]*: *(.*)$", re.MULTILINE
)
_PLACE = re.compile(rf"{_SOURCE}[:(](\d+)")

_PLACE_IN_LOG = re.compile(
    r"^(?:(error|warning): )?[^\s:]*:(\d+):(\d+): (?:(error|warning|note): )?", re.MULTILINE
)
"""A line of a driver's build log: PoCL begins with the kind, others put it after the place."""


def build(text: str, command: Sequence[str], *, timeout: float, dialect: Dialect = CPP) -> bytes:
    """The output of `command` for text in a dialect: usually an ELF shared object.

    The command's arguments contain ``{input}`` and ``{output}``. Raises `CompilationError` with the compiler's message
    and the kernel line of the failing C++ line.
    """
    finished = commands.run(
        command,
        text,
        input_name=f"kernel{dialect.suffix}",
        output_name=OUTPUT_NAME,
        timeout=timeout,
        purpose=f"building a kernel's {dialect.title}",
    )
    if finished.status == 0:
        return finished.output
    raise failure(
        text,
        finished.diagnostics,
        dialect,
        f"the {dialect.title} compiler {command[0]}",
        f"it ended with status {finished.status}",
    )


def failure(text: str, diagnostics: str, dialect: Dialect, compiler: str, otherwise: str) -> CompilationError:
    """The error for what a compiler said of a text. `otherwise` stands for a message that names no line."""
    found = _ERROR.search(diagnostics)
    message = found[2].strip() if found else otherwise
    location = operation = None
    lines: list[str] = []
    if found:
        number, comments = int(found[1]), SourceComments(text)
        source = (text.splitlines()[number - 1 : number] or [""])[0].strip()
        lines = [f"line {number} of the {dialect.title}: {source}"]
        # An error in a support function belongs to its caller in the kernel, which a later message names.
        for place in _PLACE.finditer(diagnostics, found.start()):
            location = comments.location_of_line(int(place[1]))
            operation = comments.operation_of_line(int(place[1]))
            if location is not None:
                break
    lines += ["what the compiler said:", diagnostics.strip()]
    return CompilationError(
        f"{compiler} refused the kernel: {message}\n" + "\n".join(lines),
        operation=operation,
        location=location,
        remedy=f"see the text with `tpk compile --emit {dialect.name}`, and check the options of the compile command",
    )


def opencl_failure(text: str, log: str, device: str) -> CompilationError:
    """The error, at the kernel's line, for a build log of an OpenCL driver, however it calls the source."""
    named = _PLACE_IN_LOG.sub(lambda m: f"kernel.cl:{m[2]}:{m[3]}: {m[1] or m[4] or 'note'}: ", log)
    return failure(text, named, OPENCL, f"the compiler of {device}", "its driver gives no line")

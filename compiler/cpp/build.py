"""Building emitted C++ with a vendor's compiler, and mapping its errors to the kernel's lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triton_porting_kit.compiler import commands
from triton_porting_kit.compiler.source_comments import SourceComments
from triton_porting_kit.errors import CompilationError

SOURCE_NAME, OUTPUT_NAME = "kernel.cpp", "kernel.so"

_ERROR = re.compile(
    rf"^(?:.*/)?{re.escape(SOURCE_NAME)}[:(](\d+)(?:[:,]\d+)?\)?: *(?:fatal )?error[^:]*: *(.*)$",
    re.MULTILINE,
)

_PLACE = re.compile(rf"{re.escape(SOURCE_NAME)}[:(](\d+)")


def build(text: str, command: Sequence[str], *, timeout: float) -> bytes:
    """The output of `command` for C++ text: usually an ELF shared object.

    The command's arguments contain ``{input}`` and ``{output}``. Raises `CompilationError` with the compiler's message
    and the kernel line of the failing C++ line.
    """
    finished = commands.run(
        command,
        text,
        input_name=SOURCE_NAME,
        output_name=OUTPUT_NAME,
        timeout=timeout,
        purpose="building a kernel's C++",
    )
    if finished.status == 0:
        return finished.output
    found = _ERROR.search(finished.diagnostics)
    message = found[2].strip() if found else f"it ended with status {finished.status}"
    location = operation = None
    lines: list[str] = []
    if found:
        number, comments = int(found[1]), SourceComments(text)
        lines = [f"line {number} of the C++: {(text.splitlines()[number - 1 : number] or [''])[0].strip()}"]
        # An error in a support function belongs to its caller in the kernel, which a later message names.
        for place in _PLACE.finditer(finished.diagnostics, found.start()):
            location = comments.location_of_line(int(place[1]))
            operation = comments.operation_of_line(int(place[1]))
            if location is not None:
                break
    lines += ["what the compiler said:", finished.diagnostics.strip()]
    raise CompilationError(
        f"the C++ compiler {command[0]} refused the kernel: {message}\n" + "\n".join(lines),
        operation=operation,
        location=location,
        remedy="see the C++ with `tpk compile --emit cpp`, and check the options of the compile command",
    )

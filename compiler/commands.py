"""Running a vendor's program on a text: in a private folder, with a time limit, without a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.errors import CompilationError, OptionError

INPUT, OUTPUT = "{input}", "{output}"
"""Placeholders in arguments: the path of a file with the text, and the path that the program writes its output to."""

_LONGEST = 20_000
"""Most characters of a program's messages to quote in an error."""


@dataclass(frozen=True)
class Finished:
    """The result of a program: its exit status, its output, and its messages."""

    status: int
    output: bytes
    diagnostics: str
    input_name: str
    """The name of the input in the program's messages: a path, or ``<stdin>``."""


def command_words(text: str, option: str) -> tuple[str, ...]:
    """The program and the arguments of a command that a compile option gives as text, split as a shell does.

    An empty text has none. Raises `OptionError`, which names the option, if a quotation does not end.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise OptionError(
            f"{option} is {text!r}, which cannot be split into arguments: {str(error).lower()}",
            remedy="quote it as for a shell: each quotation mark needs another one that closes it",
        ) from None


def run(
    command: Sequence[str], text: str, *, input_name: str, output_name: str, timeout: float, purpose: str
) -> Finished:
    """Run `command` on `text` and return its result, whatever its exit status.

    If no argument contains ``{input}``, the text is passed on standard input. If none contains ``{output}``, the output
    is standard output. Both files are in a private folder that is removed afterwards. `timeout` is in seconds.
    `purpose` says in error messages what the program is run for.

    Raises `CompilationError` if the program is missing, takes too long, is ended by a signal, or succeeds without
    writing its output.
    """
    if isinstance(command, str) or not command:
        raise CompilationError(
            f"{purpose}: the command is {command!r}, and not a sequence of arguments",
            remedy=f"give a sequence of arguments, such as ('vendor-opt', '{INPUT}')",
        )
    with tempfile.TemporaryDirectory(prefix="tpk-") as folder:
        source, result = Path(folder, input_name), Path(folder, output_name)
        arguments = [str(a).replace(INPUT, str(source)).replace(OUTPUT, str(result)) for a in command]
        takes_file = any(INPUT in str(argument) for argument in command)
        writes_file = any(OUTPUT in str(argument) for argument in command)
        if takes_file:
            source.write_text(text)
        given = b"" if takes_file else text.encode()
        status, output, messages = _finish(arguments, given, folder, timeout, purpose)
        if writes_file:
            messages = _joined(messages, output)
            output = result.read_bytes() if result.is_file() else b""
        if status == 0 and not output:
            where = f"the file {output_name}" if writes_file else "standard output"
            raise CompilationError(
                f"{purpose}: {arguments[0]} succeeded but wrote nothing to {where}{_quoted(messages)}",
                remedy=f"let it write there, or give it the path of its output by {OUTPUT} in its arguments",
            )
        return Finished(status, output, _cut(messages), str(source) if takes_file else "<stdin>")


def _finish(
    arguments: list[str], given: bytes, folder: str, timeout: float, purpose: str
) -> tuple[int, bytes, str]:
    name = arguments[0]
    try:
        # A session of its own, so that processes started by the program end with it.
        process = subprocess.Popen(
            arguments, cwd=folder, env={**os.environ, "LC_ALL": "C"}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError:
        raise CompilationError(
            f"{purpose}: the program {name!r} was not found",
            remedy="install it, put its folder on PATH, or give its whole path",
        ) from None
    except OSError as error:
        raise CompilationError(
            f"{purpose}: {name!r} cannot be started: {error.strerror}",
            remedy="check that the file is a program for this machine, and that you may execute it",
        ) from error
    try:
        output, errors = process.communicate(given, timeout)
    except subprocess.TimeoutExpired:
        raise CompilationError(
            f"{purpose}: {name} did not finish within {timeout:g} seconds and was ended",
            remedy="raise the time-out, or look for an endless loop in the program",
        ) from None
    finally:
        _end(process)
    messages = errors.decode(errors="replace")
    if process.returncode < 0:
        raise CompilationError(
            f"{purpose}: {name} crashed: {_signal_name(-process.returncode)}{_quoted(_cut(messages))}",
            remedy="this is a defect of that program: report it to its authors",
        )
    return process.returncode, output, messages


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever still runs in the program's session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        process.communicate()


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _joined(messages: str, more: bytes) -> str:
    text = more.decode(errors="replace")
    return f"{messages}\n{text}" if messages and text else messages or text


def _quoted(messages: str) -> str:
    return f"\n{messages.rstrip()}" if messages.strip() else ""


def _cut(messages: str) -> str:
    return messages if len(messages) <= _LONGEST else f"{messages[:_LONGEST]}\n... (cut)"

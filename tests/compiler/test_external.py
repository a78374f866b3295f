"""Handing kernels to external programs: small stand-ins for a vendor's tool, and what becomes of their errors."""

from __future__ import annotations

import inspect
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_module

from triton_porting_kit.compiler import Stage, command_words, run_tool, tool_version
from triton_porting_kit.compiler.artefacts import Parsed, mlir_artefact
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.errors import CompilationError, OptionError
from triton_porting_kit.toolchain import compat, mlir


@triton.jit
def row_sums(X, O, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    x = tl.load(X + columns, mask=columns < n, other=0.0)
    product = tl.exp(x) * x
    tl.store(O, tl.sum(product, 0))


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(row_sums.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def ttir() -> str:
    module, _context = ttir_module(row_sums, {"X": "*fp32", "O": "*fp32", "n": "i32"}, {"B": 64})
    return compat.generic_text(module)


@pytest.fixture(scope="module")
def structured(ttir: str) -> Parsed:
    return mlir_artefact(import_ttir(ttir))


@pytest.fixture
def tool(tmp_path: Path) -> Any:
    """`tool(body)`: the command of a Python program; `text` holds its input, `fail(line, message)` refuses it."""

    def make(body: str) -> tuple[str, ...]:
        path = tmp_path / "vendor-opt"
        path.write_text(_PROGRAM + inspect.cleandoc(body))
        return (sys.executable, str(path))

    return make


_PROGRAM = """\
import os, re, signal, sys, time
name = "<stdin>" if len(sys.argv) < 2 or not os.path.exists(sys.argv[1]) else sys.argv[1]
text = sys.stdin.read() if name == "<stdin>" else open(name).read()

def fail(line, message, file=None, column=5):
    print(f"{file or name}:{line}:{column}: error: {message}", file=sys.stderr)
    sys.exit(1)

def line_with(word):
    return next(i for i, line in enumerate(text.splitlines(), 1) if word in line)

"""


def refused(command: tuple[str, ...], source: object, **options: Any) -> CompilationError:
    with pytest.raises(CompilationError) as caught:
        run_tool(command, source, **options)
    return caught.value


# --- what comes back ---------------------------------------------------------------------------------------


def test_text_through_standard_streams(tool: Any, ttir: str) -> None:
    assert run_tool(tool("sys.stdout.write(text.upper())"), ttir) == ttir.upper().encode()


def test_text_through_files(tool: Any, ttir: str) -> None:
    command = (*tool("open(sys.argv[2], 'wb').write(b'\\x7fBIN' + text.encode())"), "{input}", "{output}")
    assert run_tool(command, ttir) == b"\x7fBIN" + ttir.encode()


def test_files_are_named_as_asked_for_and_private(tool: Any, ttir: str) -> None:
    body = """
    assert os.stat(os.path.dirname(name)).st_mode & 0o777 == 0o700
    assert os.getcwd() == os.path.dirname(name)
    print(name)
    """
    path = Path(run_tool((*tool(body), "{input}"), ttir, suffix=".ttir").decode().strip())
    assert path.suffix == ".ttir"
    assert not path.parent.exists()


def test_triton_modules_and_artefacts_are_given_with_locations(tool: Any, structured: Parsed) -> None:
    module, _context = ttir_module(row_sums, {"X": "*fp32", "O": "*fp32", "n": "i32"}, {"B": 64})
    assert b'"tt.load"' in (given := run_tool(tool("sys.stdout.write(text)"), module))
    assert Path(__file__).name.encode() in given
    assert run_tool(tool("sys.stdout.write(text)"), structured) == str(structured).encode()


def test_arguments_are_no_shell_commands(tool: Any, ttir: str) -> None:
    words = ("$HOME", "a b", "; exit 1", "*")
    body = "print('|'.join(sys.argv[2:]))"
    assert run_tool((*tool(body), "{input}", *words), ttir).decode().strip() == "|".join(words)


def test_a_stage_of_a_pipeline(tool: Any, ttir: str) -> None:
    stage = Stage("vendor", lambda source, metadata: run_tool(tool("print(len(text))"), source))
    assert int(stage.run(ttir, {})) == len(ttir)


# --- errors that point into the kernel ---------------------------------------------------------------------

PLACES = {
    "operation": ('"math.exp"', "exp(x)"),
    "with regions": ('"tt.reduce"', "tl.sum"),
    "inside a region": ('"tt.reduce.return"', "tl.sum"),
    "load": ('"tt.load"', "tl.load"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("arguments", [(), ("{input}",)], ids=["stdin", "file"])
def test_a_line_of_the_text_is_brought_back(
    tool: Any, ttir: str, place: str, arguments: tuple[str, ...]
) -> None:
    word, source = PLACES[place]
    error = refused((*tool(f"fail(line_with({word!r}), 'no such unit')"), *arguments), ttir)
    assert error.operation == word.strip('"')
    assert error.location is not None
    assert (error.location.file, error.location.line) == (__file__, line_of(source))
    assert "no such unit" in str(error)
    assert inspect.getsourcelines(row_sums.fn)[0][
        error.location.line - line_of("def row_sums") + 1
    ].strip() in str(error)


def test_lines_of_the_structured_form(tool: Any, structured: Parsed) -> None:
    error = refused(tool("fail(line_with('math.exp'), 'no such unit')"), structured)
    assert error.location is not None
    assert (error.operation, error.location.line) == ("math.exp", line_of("exp(x)"))


def test_locations_that_the_tool_prints(tool: Any, ttir: str) -> None:
    error = refused(tool(f"fail(12, \"'tt.dot' op has no unit\", file={__file__!r}, column=3)"), ttir)
    assert error.operation == "tt.dot"
    assert str(error.location) == f"{__file__}:12:3"
    error = refused(tool("""sys.exit('loc("kernel.py":7:2): error: bad tile')"""), ttir)
    assert str(error.location) == "kernel.py:7:2"


def test_a_line_of_tritons_library_is_the_callers(tool: Any, ttir: str) -> None:
    body = """
    print("/x/triton/language/standard.py:287:12: error: no sums", file=sys.stderr)
    print("kernel.py:9:4: note: called from", file=sys.stderr)
    sys.exit(1)
    """
    assert str(refused(tool(body), ttir).location) == "kernel.py:9:4"


def test_a_line_of_an_expansion_is_that_of_the_operation_expanded(tool: Any, ttir: str) -> None:
    """The linalg form has positions in texts without a file, which are printed as those of the standard input."""
    body = """
    print("-:7:12: error: no sums", file=sys.stderr)
    print("kernel.py:9:4: note: called from", file=sys.stderr)
    sys.exit(1)
    """
    assert str(refused(tool(body), ttir).location) == "kernel.py:9:4"


def test_the_first_error_counts_and_all_is_quoted(tool: Any, ttir: str) -> None:
    body = """
    print(f"{name}:1:1: warning: old syntax", file=sys.stderr)
    print(f"vendor-opt: {name}:{line_with('math.exp')}:5: error: first", file=sys.stderr)
    fail(line_with('tt.store'), "second")
    """
    error = refused(tool(body), ttir)
    assert error.operation == "math.exp"
    for said in ("old syntax", "first", "second"):
        assert said in str(error)


@pytest.mark.parametrize("line", [0, 99999])
def test_a_line_that_is_not_there(tool: Any, ttir: str, line: int) -> None:
    error = refused(tool(f"fail({line}, 'lost')"), ttir)
    assert error.location is None
    assert "lost" in str(error)


def test_the_vendors_remedy(tool: Any, ttir: str) -> None:
    assert refused(tool("fail(1, 'no')"), ttir, remedy="ask the help desk").remedy == "ask the help desk"


def test_a_tool_that_parses_mlir_and_refuses_an_operation(tool: Any, ttir: str) -> None:
    """Its own idea of what the chip has not, found in the parsed module, reported at the operation's location."""
    body = """
    from triton_porting_kit.toolchain import mlir
    module = mlir.parse_module(text)

    def visit(operation):
        if operation.name == "math.exp":
            found = re.search(r'"([^"]+)":(\\d+):(\\d+)', str(operation.location))
            print(f"{found[1]}:{found[2]}:{found[3]}: error: '{operation.name}' op: the chip has no exponentials",
                  file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    print(module)
    """
    error = refused(tool(body), ttir)
    assert error.operation == "math.exp"
    assert error.location is not None
    assert (error.location.file, error.location.line) == (__file__, line_of("exp(x)"))
    accepted = run_tool(tool(body), ttir.replace("math.exp", "math.sin")).decode()
    assert "tt.store" in str(mlir.parse_module(accepted))


# --- errors that do not ------------------------------------------------------------------------------------


def test_a_command_that_is_not_there(ttir: str) -> None:
    error = refused(("no-such-vendor-opt",), ttir)
    assert "the program 'no-such-vendor-opt' was not found" in str(error)


def test_a_command_that_cannot_be_started(tmp_path: Path, ttir: str) -> None:
    path = tmp_path / "data"
    path.write_text("text")
    assert "cannot be started" in str(refused((str(path),), ttir))


def test_a_shell_string_is_refused(ttir: str) -> None:
    with pytest.raises(CompilationError, match="sequence of arguments"):
        run_tool("vendor-opt --all", ttir)


def test_a_crash(tool: Any, ttir: str) -> None:
    body = "print('assertion `x` failed', file=sys.stderr); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGABRT)"
    error = refused(tool(body), ttir)
    assert "crashed: signal 6 (SIGABRT)" in str(error)
    assert "assertion `x` failed" in str(error)


def test_a_tool_that_hangs_ends_with_what_it_started(ttir: str, tmp_path: Path) -> None:
    mark = tmp_path / "child"
    script = f"sleep 600 & echo $! > {mark}; wait"  # a shell begins at once, on a busy machine, too
    error = refused(("/bin/sh", "-c", script), ttir, timeout=3.0)
    assert "did not finish within 3 seconds" in str(error)
    status = Path(f"/proc/{int(mark.read_text())}/stat")
    deadline = time.monotonic() + 60
    while status.exists() and status.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not status.exists() or status.read_text().split()[2] == "Z"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sys.exit(3)", "ended with status 3 without a message"),
        ("print('licence expired', file=sys.stderr); sys.exit(2)", "ended with status 2:\nlicence expired"),
        ("print('no such pass'); sys.exit(1)", "ended with status 1:\nno such pass"),
        ("sys.exit('vendor-opt: error: unknown option --x')", "unknown option --x"),
        ("pass", "succeeded but wrote nothing to standard output"),
    ],
)
def test_other_failures(tool: Any, ttir: str, body: str, expected: str) -> None:
    assert expected in str(refused(tool(body), ttir))


def test_no_output_file(tool: Any, ttir: str) -> None:
    error = refused((*tool("print('done')"), "{input}", "{output}"), ttir)
    assert "wrote nothing to the file kernel.out" in str(error)


def test_output_that_is_not_valid(tool: Any, ttir: str) -> None:
    def check(output: bytes) -> None:
        mlir.parse_module(output.decode())

    error = refused(tool("print('builtin.module {')"), ttir, check=check)
    assert "what it wrote is not valid" in str(error)
    assert run_tool(tool("print('builtin.module {}')"), ttir, check=check) == b"builtin.module {}\n"


# --- versions ----------------------------------------------------------------------------------------------


def test_the_version_of_a_program(tmp_path: Path) -> None:
    path = tmp_path / "vendor-opt"
    path.write_text(f"#!{sys.executable}\nimport sys\nprint('vendor-opt 4.2\\n(c) ' + sys.argv[1])\n")
    path.chmod(0o700)
    assert tool_version((str(path), "{input}")) == "vendor-opt 4.2"
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such option')\n")
    assert tool_version((str(path), "{input}")) == "vendor-opt 4.2"  # asked once
    with pytest.raises(CompilationError, match="status 1: no such option"):
        tool_version((str(path), "other"))
    with pytest.raises(CompilationError, match="'no-such-opt' was not found"):
        tool_version(("no-such-opt",))


def test_the_words_of_a_command() -> None:
    assert command_words("c++ -D'A B' {input}", "cxx_command") == ("c++", "-DA B", "{input}")
    assert command_words("", "cxx_command") == ()
    with pytest.raises(OptionError, match=r"cxx_command is 'g\+\+ \"x', which .*: no closing quot"):
        command_words('g++ "x', "cxx_command")

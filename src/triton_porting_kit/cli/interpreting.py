"""The command `tpk interpret`: run a kernel in the structured form, or a recorded launch, on NumPy arrays."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.cli.specialization import split
from triton_porting_kit.untrusted import shown

if TYPE_CHECKING:
    from triton_porting_kit.compiler.dialect.interpreter import Parameter
    from triton_porting_kit.replay import Capture

EPILOG = """Examples:

tpk compile add.py:add_kernel -s "*fp32, *fp32, *fp32, i32" -c BLOCK=256 --emit structured -o add.structured

tpk interpret add.structured --grid 4 --args "random(1000), x.npy, zeros(1000), 1000"

tpk interpret add.structured --grid 4 --args "x_ptr=random(1000), y_ptr=ones(1000), out_ptr=zeros(1000), n=1000" -o out

tpk interpret captures/0001-add_kernel                    (a recorded launch; see tpk capture)
"""

_ARRAY = re.compile(r"(zeros|ones|arange|random)\(\s*(\d+(?:\s*x\s*\d+)*)\s*\)")
_SEED = 0


def interpret(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The output of `tpk compile --emit structured`, or the folder of a launch recorded by `tpk capture`.",
        ),
    ],
    grid: Annotated[str, typer.Option(metavar="X,Y,Z", help="Number of programs along each axis.")] = "",
    args: Annotated[
        str,
        typer.Option(
            "--args",
            "-a",
            metavar="ARG,...",
            help="The arguments, in order or by name (`n=1000`): numbers and null; for pointers also `FILE.npy`, "
            "`zeros(1000)`, `ones(32x64)`, `arange(64)` or `random(1000)`, with the kernel's element type.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write each array to DIR/NAME.npy."),
    ] = None,
) -> None:
    """Interpret the structured form of a kernel on NumPy arrays, operation by operation, without compiling it.

    Prints the arrays that the kernel changed. An access outside of the arrays or a failed assertion stops the kernel
    with an error that names the operation, the kernel's line, the program and the element. A recorded launch has its
    own grid and arguments; the resulting memory is compared with the recorded memory, where rounding may differ by a
    few units in the last place. Elements without a NumPy type (bf16, 8-bit floats) are read and written as float32.

    The interpreter is slow: a program of the grid takes a millisecond or more.
    """
    if source.is_dir():
        if grid or args:
            raise UserError("a recorded launch has its own grid and arguments: leave out --grid and --args")
        _recorded(source, output)
        return
    if not source.is_file():
        raise UserError(f"there is no file or folder {source}")
    _text(source, _counts(grid), split(args), output)


def _counts(grid: str) -> tuple[int, ...]:
    parts = [part.strip() for part in grid.split(",")] if grid else ["1"]
    if len(parts) > 3 or not all(part.isdigit() for part in parts):
        raise UserError(f"the grid {grid!r} is not one to three counts, as in --grid 16,4")
    return tuple(map(int, parts))


# --- the text of a kernel ----------------------------------------------------------------------------


def _text(source: Path, grid: Sequence[int], given: Sequence[str], output: Path | None) -> None:
    import numpy as np

    from triton_porting_kit.compiler import artefacts
    from triton_porting_kit.compiler.dialect.interpreter import interpret, read_kernel

    try:
        text = source.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{source} cannot be read as text: {error}") from error
    kernel = read_kernel(artefacts.parse_structured(text))
    texts = _in_order(kernel.name, kernel.parameters, given)
    arguments = [
        _argument(number, parameter, text)
        for number, (parameter, text) in enumerate(zip(kernel.parameters, texts, strict=True))
    ]
    given_arrays = [
        (parameter, array, array.copy())
        for parameter, array in zip(kernel.parameters, arguments, strict=True)
        if parameter.is_pointer and array is not None
    ]
    interpret(kernel, grid, arguments)
    changed = [array.tobytes() != before.tobytes() for _, array, before in given_arrays]
    for (parameter, array, _), differs in zip(given_arrays, changed, strict=True):
        values = _numbers(array, parameter.pointee)
        if differs:
            shape = "x".join(map(str, array.shape))
            # Large arrays are abbreviated; `--output` writes all elements.
            some = np.array2string(np.asarray(values), threshold=64)
            typer.echo(f"{shown(parameter.name)} ({parameter.pointee}, {shape}):\n{some}")
        if output is not None:
            _save(output, parameter.name, values)
    if not any(changed):
        typer.echo("the kernel changed no array")


def _in_order(kernel: str, parameters: Sequence[Parameter], given: Sequence[str]) -> list[str]:
    """The texts of the arguments, in the order of the parameters."""
    names = [parameter.name for parameter in parameters]
    found: dict[str, str] = {}
    for number, item in enumerate(given):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            name, value = names[number] if number < len(names) else "", item
        if name not in names or name in found:
            raise UserError(f"{kernel} has no parameter for {item!r}; {_expected(kernel, parameters)}")
        found[name] = value
    missing = [name for name in names if name not in found]
    if missing:
        raise UserError(f"--args lacks {', '.join(missing)}; {_expected(kernel, parameters)}")
    return [found[name] for name in names]


def _expected(kernel: str, parameters: Sequence[Parameter]) -> str:
    kinds = [f"{p.name}: {'*' + p.pointee if p.is_pointer else p.type}" for p in parameters]
    return f"{kernel} takes {', '.join(kinds) or 'no arguments'}"


def _argument(number: int, parameter: Parameter, text: str) -> Any:
    if not parameter.is_pointer:
        try:
            return int(text, 0) if parameter.type.startswith("i") else float(text)
        except ValueError:
            if text in ("True", "False"):
                return int(text == "True")
            raise UserError(
                f"{parameter.name} has type {parameter.type}, and {text!r} is not a number of this type"
            ) from None
    if text == "null":
        return None
    made = _ARRAY.fullmatch(text)
    if made is None:
        return _loaded(parameter, text)
    shape = tuple(int(size) for size in made[2].split("x"))
    try:
        return _made(made[1], shape, parameter.pointee, _SEED + number)
    except (MemoryError, OverflowError, ValueError) as error:
        raise UserError(f"{text}, given for {parameter.name}, is too large an array: {error}") from error


def _made(kind: str, shape: tuple[int, ...], element: str, seed: int) -> Any:
    import numpy as np

    count = math.prod(shape)
    random = np.random.default_rng(seed)
    if kind == "random":
        values = random.integers(0, 100, count) if element.startswith("i") else random.uniform(-1, 1, count)
    else:
        values = np.arange(count) if kind == "arange" else np.full(count, kind == "ones", np.int64)
    return _held(values, element).reshape(shape)


def _loaded(parameter: Parameter, text: str) -> Any:
    import numpy as np

    if not text.endswith(".npy"):
        raise UserError(
            f"{parameter.name} is a pointer to {parameter.pointee}, and {text!r} is not a valid argument for it: give "
            "FILE.npy, zeros(1000), ones(32x64), arange(64), random(1000) or null"
        )
    try:
        values = np.load(text, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"NumPy cannot read {text}, given for {parameter.name}: {error}") from error
    if values.dtype.kind not in "biuf":
        raise UserError(
            f"{text}, given for {parameter.name}, has elements of type {values.dtype}; it must hold numbers"
        )
    return _held(values, parameter.pointee)


def _held(values: Any, element: str) -> Any:
    """Convert numbers to elements of a type. For floats without a NumPy type, unsigned integers are taken as bits."""
    import numpy as np

    from triton_porting_kit.compiler.dialect.interpreter import formats

    dtype = formats.dtype_of(element)
    if formats.is_float(element) and values.dtype.kind in "fi":
        wide = values if values.dtype.itemsize > 2 and values.dtype.kind == "f" else values.astype(np.float64)
        return np.ascontiguousarray(formats.narrow(wide, element))
    return np.ascontiguousarray(values.astype(dtype))


def _numbers(array: Any, element: str) -> Any:
    """The values of an array as they are printed and saved."""
    from triton_porting_kit.compiler.dialect.interpreter import formats

    return formats.widen(array, element) if element in formats.FORMATS else array


def _save(folder: Path, name: str, values: Any) -> None:
    import numpy as np

    path = folder / (re.sub(r"[^-\w]+", "_", name) + ".npy")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, values, allow_pickle=False)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


# --- a recorded launch -------------------------------------------------------------------------------


def _recorded(folder: Path, output: Path | None) -> None:
    import numpy as np

    from triton_porting_kit.cli.captures import described
    from triton_porting_kit.compiler.dialect.interpreter import Launch, Memory, formats, read_kernel
    from triton_porting_kit.errors import InsecureCacheError
    from triton_porting_kit.replay import read
    from triton_porting_kit.replay.comparison import difference
    from triton_porting_kit.replay.replaying import check_replayable

    try:
        capture = read(folder)
    except InsecureCacheError as error:
        raise UserError(str(error)) from error
    manifest = capture.manifest
    typer.echo(shown(described(manifest)))
    check_replayable(manifest)
    kernel = read_kernel(_structured_form(capture))
    memory = Memory()
    contents = [np.frombuffer(capture.content(b.before), np.uint8).copy() for b in manifest.buffers]
    for content, buffer in zip(contents, manifest.buffers, strict=True):
        if content.size:
            memory.add(content, f"the memory of {', '.join(buffer.names)}", int(buffer.address, 16))
    own = manifest.slots[: len(kernel.parameters)]  # The launcher's own parameters follow.
    arguments = [
        np.frombuffer(capture.block, formats.dtype_of(parameter.type), 1, slot.offset)[0]
        for parameter, slot in zip(kernel.parameters, own, strict=True)
    ]
    Launch(kernel, manifest.grid, memory).run(arguments)
    for number, (content, buffer) in enumerate(zip(contents, manifest.buffers, strict=True)):
        if output is not None:
            _save(output, f"buffer-{number}", content)
        if buffer.after is not None:
            found = difference(manifest, number, content.tobytes(), capture.content(buffer.after))
            names = ", ".join(buffer.names)
            same = f"buffer {number} ({names}) is identical to the recording, bit for bit"
            typer.echo(shown(str(found or same)))


def _structured_form(capture: Capture) -> Any:
    """The structured module of a recorded kernel, imported without assumptions about the launch."""
    from triton_porting_kit.compiler import structured, ttir
    from triton_porting_kit.toolchain import compat

    source = capture.manifest.kernel.source
    if source is None:
        raise UserError(
            "the recording lacks the IR of Triton's front end (TRITON_STORE_BINARY_ONLY was set, or the kit was "
            "older): record the launch again"
        )
    with tempfile.TemporaryDirectory(prefix="tpk-interpret-") as place:
        path = Path(place) / "kernel.ttir"
        path.write_bytes(capture.content(source))
        module = compat.read_ttir(path)
    ttir.optimize(module)
    return structured.import_ttir(compat.generic_text(module))

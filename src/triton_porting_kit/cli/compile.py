"""`tpk compile`: one kernel, one stage, as text or as a file."""

from __future__ import annotations

import difflib
import os
import platform
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton_porting_kit.cli import kernel_file, specialization
from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.errors import CompilationError, OptionError, ToolchainError

if TYPE_CHECKING:
    from triton_porting_kit.compiler import CpuTarget


@dataclass(frozen=True)
class Request:
    """The arguments of `tpk compile`."""

    kernel: str
    signature: str
    constants: tuple[str, ...]
    options: tuple[str, ...]
    emit: str
    output: Path | None
    backend: str
    target: str | None
    arch: str | None
    cpu: str | None
    features: str
    convention: str = "triton-shared"
    chip: str | None = None
    picture: Path | None = None
    summary: bool = False


def run_compile(request: Request) -> None:
    """Compile up to the requested stage and write its artefact.

    Raises `UserError` for mistakes in the request, and `CompilationError` with the line of the kernel.
    """
    _require_triton()
    place, name = kernel_file.split_reference(request.kernel)
    module = kernel_file.load(place)
    kernel = kernel_file.find_kernel(module, name, place)
    special = specialization.specialize(kernel, request.signature, request.constants, module)
    backend = _backend(request)
    options = _options(request, backend, module)
    stages = _stages(backend, options)
    if request.chip:
        chip = chip_named(request.chip)
        stages = _for_chip(chip, request.emit, stages, options)
    else:
        chip = backend.chip() if hasattr(backend, "chip") else None
    if request.picture and chip is None:
        raise UserError("a picture is of a chip's memories: name the chip with --chip")
    if request.summary:
        return write(_summary(request, kernel, special, backend, options, stages), request.output)
    names = ["source", *stages]
    names += ["asm"] if _has_assembly(stages, options) else []
    names += [name for name in MADE_HERE if "structured" in stages and name not in stages]
    if request.emit not in names:
        raise UserError(
            f"backend {backend.target.backend} has no stage {request.emit!r}; it has {', '.join(names)}"
        )
    artefact = _emit(request, kernel, special, backend, options, stages)
    if isinstance(artefact, bytes) and request.output is None and sys.stdout.isatty():
        raise UserError(f"{request.emit} is binary; write it to a file with --output {name}.{request.emit}")
    if request.picture:
        if request.emit != "placed":
            raise UserError("--picture draws the stage placed: give --emit placed")
        _draw(str(artefact), chip, request)
    write(artefact, request.output)


def structured(kernel: Any, signature: str, constants: tuple[str, ...], module: Any) -> str:
    """The structured form of a kernel by the backend cpu, as text.

    Raises `UserError` and `CompilationError` as `run_compile` does.
    """
    _require_triton()
    request = Request("", signature, constants, (), "structured", None, "cpu", None, None, None, "")
    special = specialization.specialize(kernel, signature, constants, module)
    backend = _backend(request)
    options = _options(request, backend, module)
    return str(_emit(request, kernel, special, backend, options, _stages(backend, options)))


def _for_chip(chip: Any, emit: str, stages: dict[str, Any], options: Any) -> dict[str, Any]:
    """The stages up to ``structured``, and then those for a chip: by C++ where `emit` is a stage of that way."""
    from triton_porting_kit.compiler.npu import npu_cpp_pipeline, npu_pipeline

    if "structured" not in stages:
        raise UserError("--chip needs a backend with the stage structured, as cpu")
    if emit in LANGUAGES and emit != "cpp":
        raise UserError(f"kernels for a chip are written as C++: give --emit cpp, not {emit}")
    names = list(stages)
    kept = names[: names.index("structured") + 1]
    vector = npu_pipeline(chip, num_stages=options.num_stages).after("structured")
    cpp = npu_cpp_pipeline(chip, num_stages=options.num_stages).after("structured")
    chosen = cpp if emit in ("cpp", "so") else vector
    return {name: stages[name] for name in kept} | {stage.name: stage.run for stage in chosen.stages}


def chip_named(name: str) -> Any:
    """The description of a chip, by the name of one of the kit's or by the path of a file. Raises `UserError`."""
    from triton_porting_kit import chips
    from triton_porting_kit.errors import PortingKitError

    try:
        return chips.load(name)
    except FileNotFoundError as error:
        known = ", ".join(chips.CHIPS)
        raise UserError(f"there is no chip {name!r}, nor a file of that name; there are {known}") from error
    except OSError as error:
        raise UserError(f"the description {name} cannot be read: {error.strerror}") from error
    except PortingKitError as error:
        raise UserError(str(error)) from error


def _summary(
    request: Request, kernel: Any, special: Any, backend: Any, options: Any, stages: dict[str, Any]
) -> str:
    """What named operations of a form do of the work that the structured form needs."""
    from triton_porting_kit.compiler import artefacts
    from triton_porting_kit.compiler.summary import summarised

    form = "tiles" if "tiles" in stages else request.emit
    if form not in ("tiles", *MADE_HERE) or form in LANGUAGES or "structured" not in stages:
        raise UserError(
            "--summary is about the stages for a chip, or about linalg: give --chip or --emit linalg"
        )
    texts = [
        str(_emit(replace(request, emit=emit), kernel, special, backend, options, stages))
        for emit in ("structured", form)
    ]
    return str(summarised(artefacts.parse_structured(texts[0]), artefacts.parse_mlir(texts[1]), form))


def _draw(placed: str, chip: Any, request: Request) -> None:
    """Write the picture of a plan."""
    from triton_porting_kit.compiler import artefacts
    from triton_porting_kit.compiler.tiles.picture import picture
    from triton_porting_kit.compiler.tiles.place import placed_plan

    plan = placed_plan(artefacts.parse_structured(placed))
    write(picture(plan, chip), request.picture)


def write(artefact: str | bytes, output: Path | None) -> None:
    """Write an artefact to a file or to standard output. Raises `UserError` if the file cannot be written."""
    data = artefact if isinstance(artefact, bytes) else (artefact.rstrip("\n") + "\n").encode()
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise UserError(f"{output} cannot be written: {error.strerror}") from error


def _require_triton() -> None:
    os.environ["TRITON_INTERPRET"] = "0"  # The kernels of the file must be compiled, not interpreted.
    try:
        import triton.compiler  # noqa: F401
    except Exception as error:
        raise ToolchainError(f"Triton cannot be imported ({error}); `tpk doctor` shows what to do") from error


def _backend(request: Request) -> Any:
    """Triton's compiler object for the requested target."""
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    name = request.target.partition(":")[0] if request.target else request.backend
    if request.arch and request.target:
        raise UserError("--target already names the architecture: leave out --arch")
    if request.target:
        parts = request.target.split(":")
        if len(parts) != 3 or not parts[2].isdigit():
            raise UserError(
                f"the target {request.target!r} is not of the form BACKEND:ARCH:WARP (hip:gfx942:64)"
            )
        target = GPUTarget(name, int(parts[1]) if parts[1].isdigit() else parts[1], int(parts[2]))
    elif name not in backends:
        raise UserError(
            f"there is no backend {name!r}; the registered ones are {', '.join(sorted(backends))}"
        )
    elif request.arch:
        target = _target_of(name, backends[name].compiler, request.arch)
    elif name == "cpu":
        target = GPUTarget("cpu", platform.machine(), 1)
    else:
        try:
            target = backends[name].driver().get_current_target()
        except Exception as error:
            known = ", ".join(_architectures(backends[name].compiler))
            way = f"--arch ({known})" if known else "--target BACKEND:ARCH:WARP"
            why = f" ({error})" if str(error) else ""
            raise UserError(f"backend {name} has no device here{why}; name a target with {way}") from error
    try:
        return make_backend(target)
    except RuntimeError as error:
        raise UserError(f"no backend compiles for {name!r} ({error})") from error


def _architectures(compiler: Any) -> tuple[str, ...]:
    """The values of ``--arch`` for a backend, whether or not it is made with the kit."""
    return tuple(getattr(compiler, "architectures", tuple)())


def _target_of(name: str, compiler: Any, arch: str) -> Any:
    if not _architectures(compiler):
        more = "use --cpu" if name == "cpu" else "name the whole target with --target BACKEND:ARCH:WARP"
        raise UserError(f"backend {name} does not support --arch; {more}")
    try:
        return compiler.target_of(arch)
    except OptionError as error:
        raise UserError(str(error)) from error


def _options(request: Request, backend: Any, module: Any) -> Any:
    values = {
        name: specialization.literal(text, module)
        for name, text in specialization.pairs(request.options, "the option").items()
    }
    known = backend.parse_options({})
    for name in values:
        if not hasattr(known, name):
            options = ", ".join(sorted(name for name in vars(known) if not name.startswith("_")))
            raise UserError(f"there is no compile option {name!r}; the options are {options}")
    if request.cpu or request.features:
        if backend.target.backend != "cpu":
            raise UserError("--cpu and --features work only with the backend cpu; use --target")
        values |= _cpu_options(request)
    return backend.parse_options(values)


def _cpu_options(request: Request) -> dict[str, str]:
    from triton_porting_kit.compiler import CpuTarget

    try:
        target = CpuTarget.named(request.cpu) if request.cpu else CpuTarget.host()
        changed = target.with_features(request.features)
    except ValueError as error:
        raise UserError(str(error)) from error
    if request.features:
        _check_features(request.features, target)
    return changed.options()


def _check_features(changes: str, target: CpuTarget) -> None:
    """Raise `UserError` for a feature that LLVM would ignore, with the known ones that are spelt alike."""
    from triton_porting_kit.toolchain import llvm

    known = llvm.known_features(target.triple)
    for name in (change.strip()[1:] for change in changes.split(",") if change.strip()):
        if known and name not in known:
            close = difflib.get_close_matches(name, sorted(known), 5) or sorted(known)
            raise UserError(
                f"{target.triple.partition('-')[0]} has no feature {name!r}; there are {', '.join(close)}"
            )


def _stages(backend: Any, options: Any) -> dict[str, Any]:
    from triton_porting_kit.toolchain import compat

    return compat.backend_stages(backend, options)


def _has_assembly(stages: dict[str, Any], options: Any) -> bool:
    return "llir" in stages and hasattr(options, "cpu_features")


def _emit(
    request: Request, kernel: Any, special: Any, backend: Any, options: Any, stages: dict[str, Any]
) -> str | bytes:
    from triton.compiler.errors import CompilationError as FrontEndError

    from triton_porting_kit.toolchain import compat

    made_here = request.emit in MADE_HERE and request.emit not in stages
    last = "structured" if made_here else {"asm": "llir"}.get(request.emit, request.emit)
    place = Path(kernel.fn.__code__.co_filename)
    try:
        artefact: Any = compat.front_end_module(
            kernel, special.signature, special.constants, special.attributes, backend, options
        )
        metadata: dict[str, Any] = {"target": backend.target, **vars(options)}
        for name, run in stages.items() if last != "source" else ():
            artefact = run(artefact, metadata)
            if name == last:
                break
        if request.emit == "asm":
            artefact = _assembly(str(artefact), options)
        elif made_here:
            artefact = MADE_HERE[request.emit](artefact, request, options)
    except FrontEndError as error:
        line = compat.definition_line(kernel)
        raise CompilationError(
            f"{place}: {kernel.__name__}, defined at line {line}, does not compile: {error}",
            remedy="correct the kernel at the line that Triton's message names",
        ) from error
    except RuntimeError as error:
        raise CompilationError(
            f"{place}: {kernel.__name__} does not compile: {error}",
            remedy="MLIR_ENABLE_DUMP=1 prints the module before each pass; if the kernel compiles on a GPU, this is a "
            "defect of the backend: please report the kernel",
        ) from error
    return artefact if isinstance(artefact, bytes) else str(artefact)


def _linalg(structured: Any, request: Request, options: Any) -> str:
    """Upstream dialects only, in a convention."""
    from triton_porting_kit.compiler import linalg_stage

    return str(linalg_stage(request.convention).run(structured, {}))


def _language(structured: Any, request: Request, options: Any) -> str:
    """C++, C or OpenCL C for no particular chip. Vectors are as wide as those of the requested CPU.

    OpenCL C has no vectors of more than 16 lanes, which loops for 64 bytes may use.
    """
    from triton_porting_kit.compiler import CpuTarget, cpp_pipeline

    target = CpuTarget.portable()
    if hasattr(options, "cpu_features"):
        cpu = CpuTarget.from_options(vars(options))
        widest = 32 if request.emit == "opencl" else 64
        target = CpuTarget.portable(min(cpu.vector_bytes, widest))
    stages = cpp_pipeline(target, dialect=request.emit).after("structured").until(request.emit)
    return str(stages.run(structured, {})[request.emit])


LANGUAGES = ("cpp", "c", "opencl")
MADE_HERE = {**dict.fromkeys(LANGUAGES, _language), "linalg": _linalg}
"""What is made from the structured form of any backend that has no such stage of its own."""


def _assembly(llvm_ir: str, options: Any) -> str:
    from triton_porting_kit.compiler import CpuTarget, codegen

    return codegen.emit_assembly(llvm_ir, CpuTarget.from_options(vars(options)))

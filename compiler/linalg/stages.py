"""The pipeline by way of the linalg form."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget

from .conventions import CONVENTIONS, Convention


def linalg_stage(convention: str = "triton-shared") -> Stage:
    """The stage ``linalg``: a structured artefact in upstream dialects only, in a convention by its name.

    Raises `OptionError` for a name that does not exist; the stage raises `CompilationError` with the kernel's line.
    """
    chosen = _convention(convention)

    def run(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.linalg import convolutions, iree, nests
        from triton_porting_kit.compiler.linalg.ascend import for_llvm_19
        from triton_porting_kit.compiler.linalg.expansion import located
        from triton_porting_kit.compiler.linalg.lowering import lower_to_linalg
        from triton_porting_kit.toolchain import mlir

        module = artefacts.structured_module(source)
        if chosen.convolutions and nests.PRODUCT in str(source):
            convolutions.recognise(module)
        name, promises = _facts(module)
        metadata.update(name=name, shared=0, scratch_bytes=0)
        if promises:
            metadata["promises"] = promises
        with defects.blamed("linalg", metadata):
            lower_to_linalg(module, chosen)
            artefacts.verify(module)
            text = located(mlir.printed(module, generic=chosen.generic_syntax))
            if chosen.executable:
                return iree.wrapped(module, name, text)
            return artefacts.Parsed(for_llvm_19(text) if chosen.llvm_19 else text, module)

    def check(artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        if not chosen.llvm_19:  # whose numbers mean something else here
            artefacts.parse_mlir(str(artefact))

    return Stage("linalg", run, check)


def linalg_pipeline(target: CpuTarget) -> Pipeline:
    """``ttir`` → ``structured`` → ``linalg`` → ``llir`` → ``obj`` for `target`: the form on the CPU, to judge it."""
    front = cpu_pipeline(target)

    def llir(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, codegen, defects
        from triton_porting_kit.compiler.linalg import executor

        with defects.blamed("llir", metadata):
            text = executor.lower_to_llvm_ir(artefacts.mlir_module(source), metadata["name"])
            return artefacts.Parsed(text, codegen.parse_llvm_ir(text, target))

    last = front.after("llir").stages
    check = front.stages[front.index("llir")].check
    return Pipeline((*front.until("structured").stages, linalg_stage(), Stage("llir", llir, check), *last))


def compile_linalg(source: object, target: CpuTarget) -> bytes:
    """An object for `target`, with the kernel ABI, of a kernel that `linalg_stage("triton-shared")` wrote.

    `source` is an artefact or a text. Upstream's passes alone lower it: a program can stand in for a vendor's compiler
    with this. Raises `CompilationError`, with the kernel's line where the text has locations, if the text is no MLIR,
    has no kernel of that convention or several, or if upstream's passes refuse it.
    """
    from triton_porting_kit.compiler import artefacts, codegen
    from triton_porting_kit.compiler.linalg import executor

    module = artefacts.mlir_module(source)
    text = executor.lower_to_llvm_ir(module, executor.kernel_of(module))
    return codegen.emit_object(text, target)


def _convention(name: str) -> Convention:
    from triton_porting_kit.errors import OptionError

    if name not in CONVENTIONS:
        raise OptionError(f"there is no convention {name!r}", remedy=f"give {' or '.join(CONVENTIONS)}")
    return CONVENTIONS[name]


def _facts(module: Any) -> tuple[str, list[int]]:
    """The kernel's name, and what a launch must prove (``tpk.promises``)."""
    for view in module.body.operations:
        attributes = view.operation.attributes
        if "tpk.kernel" in attributes:
            promises = list(attributes["tpk.promises"]) if "tpk.promises" in attributes else []
            return str(attributes["sym_name"].value), promises
    return "", []

"""The pipeline of the CPU reference, stage by stage.

``import triton`` loads every registered backend. MLIR and LLVM are therefore imported by the stages that need
them: a program that runs on another backend neither waits for them nor fails where they are missing.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.toolchain import compat


def cpu_pipeline(
    target: CpuTarget,
    *,
    fuse_multiply_add: bool = True,
    threads: int = 1,
    check_memory: bool = False,
    notes_program: bool = False,
) -> Pipeline:
    """``ttir`` → ``structured`` → ``loops`` → ``llir`` → ``obj`` for `target`.

    The object follows the kernel ABI of docs/architecture.md. The metadata gains the fields that Triton reads of every
    kernel (``name``, ``shared``, ...) and ``scratch_bytes``, which each thread must provide. A kernel prints a scalar
    `threads` times: once for each thread of a program. With `check_memory`, kernels check their accesses, and take the
    bounds of their arguments with each launch (docs/architecture.md). With `notes_program`, a host can find out which
    program of a kernel crashed.
    """

    def run_ttir(module: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import ttir

        ttir.optimize(module)
        return module

    def run_structured(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects, structured

        text = source if isinstance(source, str) else compat.generic_text(source)
        with defects.blamed("structured", metadata):
            promises = not metadata.get("offsets_may_wrap")
            return artefacts.structured_artefact(structured.import_ttir(text, promises=promises))

    def run_loops(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.loops import lower_to_loops

        module = artefacts.structured_module(source)
        result = lower_to_loops(
            module,
            target,
            fuse_multiply_add=fuse_multiply_add,
            threads=threads,
            check_memory=check_memory,
            notes_program=notes_program,
        )
        metadata.update(name=result.name, scratch_bytes=result.scratch_bytes, shared=0)
        if result.promises:
            metadata["promises"] = result.promises
        with defects.blamed("loops", metadata):
            return artefacts.Parsed(result.text, artefacts.parse_mlir(result.text))

    def run_llir(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, codegen, defects

        with defects.blamed("llir", metadata):
            text = codegen.lower_to_llvm_ir(source)
            return artefacts.Parsed(text, codegen.parse_llvm_ir(text, target))

    def run_obj(source: Any, metadata: Metadata) -> bytes:
        from triton_porting_kit.compiler import codegen

        return codegen.emit_object(source, target)

    def check_structured(artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        artefacts.parse_structured(str(artefact))

    def check_mlir(artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        artefacts.parse_mlir(str(artefact))

    def check_llir(artefact: Any) -> None:
        from triton_porting_kit.compiler import codegen

        codegen.parse_llvm_ir(str(artefact), target)

    return Pipeline(
        (
            Stage("ttir", run_ttir),
            Stage("structured", run_structured, check_structured),
            Stage("loops", run_loops, check_mlir),
            Stage("llir", run_llir, check_llir),
            Stage("obj", run_obj, _check_object),
        )
    )


def _check_object(artefact: Any) -> None:
    from triton_porting_kit.toolchain import elf

    elf.defined_symbols(artefact)

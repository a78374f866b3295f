"""The pipeline of the CPU reference, stage by stage.

``import triton`` loads every registered backend. MLIR and LLVM are therefore imported by the first stage: a program
that runs on another backend neither waits for them nor fails where they are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triton_porting_kit import on_demand
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
    runs_alone: bool = False,
    work_items: int = 1,
) -> Pipeline:
    """``ttir`` → ``structured`` → ``loops`` → ``llir`` → ``obj`` for `target`.

    The object follows the kernel ABI of docs/architecture.md. The metadata gains the fields that Triton reads of every
    kernel (``name``, ``shared``, ...) and ``scratch_bytes``, which each thread must provide. A kernel prints a scalar
    `threads` times: once for each thread of a program. With `check_memory`, kernels check their accesses, and take the
    bounds of their arguments with each launch (docs/architecture.md). With `notes_program`, a host can find out which
    program of a kernel crashed. With `runs_alone`, a host can let a kernel update memory without locks while no other
    thread updates any. With more than one of `work_items`, the loops are for `simt.distribute`.
    """
    stages = _Stages(target, fuse_multiply_add, threads, check_memory, notes_program, runs_alone, work_items)
    return Pipeline(
        (
            Stage("ttir", stages.ttir),
            Stage("structured", stages.structured, stages.check_structured),
            Stage("loops", stages.loops, stages.check_mlir),
            Stage("llir", stages.llir, stages.check_llir),
            Stage("obj", stages.obj, _check_object),
        )
    )


@dataclass(frozen=True)
class _Stages:
    """The stages of `cpu_pipeline`, which has the meaning of the fields."""

    target: CpuTarget
    fuse_multiply_add: bool
    threads: int
    check_memory: bool
    notes_program: bool
    runs_alone: bool
    work_items: int

    def ttir(self, module: Any, metadata: Metadata) -> Any:
        on_demand.load(*(f"compiler.{part}" for part in ("ttir", "structured", "loops", "codegen")))
        from triton_porting_kit.compiler import ttir

        ttir.optimize(module)
        return module

    def structured(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects, structured

        text = source if isinstance(source, str) else compat.generic_text(source)
        with defects.blamed("structured", metadata):
            promises = not metadata.get("offsets_may_wrap")
            module = structured.import_ttir(text, promises=promises, unrolls=True)
            return artefacts.structured_artefact(module, verified=True)

    def loops(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.loops import lower_to_loops

        module = artefacts.structured_module(source)
        result = lower_to_loops(
            module,
            self.target,
            fuse_multiply_add=self.fuse_multiply_add,
            threads=self.threads,
            check_memory=self.check_memory,
            notes_program=self.notes_program,
            runs_alone=self.runs_alone,
            work_items=self.work_items,
        )
        metadata.update(name=result.name, scratch_bytes=result.scratch_bytes, shared=0)
        if result.promises:
            metadata["promises"] = result.promises
        with defects.blamed("loops", metadata):
            return artefacts.Parsed(result.text, artefacts.parse_mlir(result.text))

    def llir(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, codegen, defects

        with defects.blamed("llir", metadata):
            text = codegen.lower_to_llvm_ir(source)
            return artefacts.Parsed(text, codegen.parse_llvm_ir(text, self.target))

    def obj(self, source: Any, metadata: Metadata) -> bytes:
        from triton_porting_kit.compiler import codegen

        return codegen.emit_object(source, self.target)

    def check_structured(self, artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        artefacts.parse_structured(str(artefact))

    def check_mlir(self, artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        artefacts.parse_mlir(str(artefact))

    def check_llir(self, artefact: Any) -> None:
        from triton_porting_kit.compiler import codegen

        codegen.parse_llvm_ir(str(artefact), self.target)


def _check_object(artefact: Any) -> None:
    from triton_porting_kit.binaries import elf

    elf.defined_symbols(artefact)

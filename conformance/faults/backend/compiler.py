"""The CPU compiler with a fault between two of its stages, or in its interface to Triton."""

from __future__ import annotations

import dataclasses
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.cpu import compiler as cpu
from triton_porting_kit.compiler import KernelOptions, Pipeline, Stage
from triton_porting_kit.conformance.faults.backend import FAULT, NAME, SEAMS
from triton_porting_kit.toolchain import compat

_SUCCESSOR = {"ttir": "structured", "structured": "loops", "loops": "llir", "llir": "obj"}


class FaultyBackend(cpu.CPUBackend):
    """Compiles for the host, with a fault."""

    name = NAME

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == NAME)

    def pipeline(self, options: Any) -> Pipeline:
        pipeline = super().pipeline(options)
        for stage, rewrites in SEAMS.rewrites.items():
            if rewrites:
                after = pipeline.stages[pipeline.index(_SUCCESSOR[stage])]
                pipeline = pipeline.replace(after.name, _rewriting(stage, after))
        return pipeline

    def version(self) -> str:
        return f"{super().version()}-{FAULT.name}"


def _rewriting(stage: str, after: Stage) -> Stage:
    """A stage that receives the rewritten artefact of the previous one."""

    def run(source: Any, metadata: Any) -> Any:
        if stage == "ttir" and not isinstance(source, str):
            source = compat.generic_text(source)
        return after.run(SEAMS.rewritten(stage, str(source)), metadata)

    return dataclasses.replace(after, run=run)


SEAMS.patch("backend", FaultyBackend)
if SEAMS.methods["options"]:
    SEAMS.patch("options", KernelOptions)

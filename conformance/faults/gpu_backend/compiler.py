"""The AMD compiler with a fault between the assembly and the binary, or in its interface to Triton."""

from __future__ import annotations

import dataclasses
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.amd import compiler as amd
from triton_porting_kit.compiler import Pipeline
from triton_porting_kit.conformance.faults.gpu_backend import FAULT, NAME, SEAMS

_LAST = "hsaco"


class FaultyGPUBackend(amd.AMDBackend):
    """Compiles for AMD GPUs, with a fault."""

    name = NAME

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == NAME)

    def pipeline(self, options: Any) -> Pipeline:
        pipeline = super().pipeline(options)
        last = pipeline.stages[pipeline.index(_LAST)]

        def run(source: Any, metadata: Any) -> Any:
            binary = last.run(SEAMS.rewritten("amdgcn", str(source)), metadata)
            for change in SEAMS.binaries:
                binary = change(binary, metadata)
            return binary

        return pipeline.replace(_LAST, dataclasses.replace(last, run=run))

    def version(self) -> str:
        return f"{super().version()}-{FAULT.name}"

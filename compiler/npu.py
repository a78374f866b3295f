"""The pipeline for a chip with on-chip memory: that of the CPU, with stages that move tiles to local memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton_porting_kit.chips import ChipDescription
from triton_porting_kit.compiler import fitting
from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.compiler.tiles.memories import SCRATCH_ALIGNMENT, vector_memory

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.npu.core import Window
    from triton_porting_kit.compiler.tiles.plan import Plan


def npu_pipeline(
    chip: ChipDescription,
    *,
    core: CpuTarget | None = None,
    fuse_multiply_add: bool = True,
    threads: int = 1,
    num_stages: int = 2,
) -> Pipeline:
    """``ttir`` → ``structured`` → ``tiles`` → ``placed`` → ``loops`` → ``llir`` → ``obj`` for a chip.

    `core` is the instruction set of the cores: that of this machine by default, on which the virtual chip runs. The
    other parameters are those of `cpu_pipeline`; `num_stages` is Triton's option.
    """
    target = core or CpuTarget.host()
    stages = _Stages(chip, target, fuse_multiply_add, threads, num_stages)
    base = cpu_pipeline(target, fuse_multiply_add=fuse_multiply_add, threads=threads)
    check = base.stages[base.index("structured")].check
    base = base.replace("loops", Stage("loops", stages.loops, base.stages[base.index("loops")].check))
    return base.insert_after("structured", Stage("placed", stages.placed, check)).insert_after(
        "structured", Stage("tiles", stages.tiles, check)
    )


@dataclass(frozen=True)
class _Stages:
    """The stages of `npu_pipeline`, which has the meaning of the fields."""

    chip: ChipDescription
    target: CpuTarget
    fuse_multiply_add: bool
    threads: int
    num_stages: int

    def tiles(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.choices import tiled

        with defects.blamed("tiles", metadata):
            module = tiled(
                lambda: artefacts.structured_module(source), self.chip, self.num_stages, self._scratch
            )
            return artefacts.structured_artefact(module)

    def _scratch(self, module: Any) -> int:
        """Bytes that vector code of a module of the stage ``tiles`` keeps besides buffers."""
        from triton_porting_kit.compiler import artefacts
        from triton_porting_kit.compiler.tiles.announce import announce
        from triton_porting_kit.compiler.tiles.place import place

        copy = artefacts.parse_mlir(str(module))
        place(copy, self.chip)
        announce(copy)
        return int(self._lowered(copy)[0].scratch_bytes)

    def _lowered(self, module: Any) -> tuple[Any, Plan, Window]:
        """The loops of a module of the stage ``placed``; its plan; and the window that they are for."""
        from triton_porting_kit.compiler.loops import lower_to_loops
        from triton_porting_kit.compiler.loops.npu.core import Window
        from triton_porting_kit.compiler.tiles.place import placed_plan

        plan = placed_plan(module)
        vector = vector_memory(self.chip)
        start = self.chip.window[vector.name] + plan.used(vector.name, aligned=SCRATCH_ALIGNMENT)
        window = Window(self.chip.window, start, self.chip.window_bytes, self.chip.digest)
        result = lower_to_loops(
            module,
            self.target,
            fuse_multiply_add=self.fuse_multiply_add,
            threads=self.threads,
            window=window,
        )
        return result, plan, window

    def placed(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.announce import announce
        from triton_porting_kit.compiler.tiles.place import place
        from triton_porting_kit.compiler.tiles.room import surely_fits

        module = artefacts.structured_module(source)
        with defects.blamed("placed", metadata):
            plan = place(module, self.chip)
            if surely_fits(module, plan, self.chip):
                fitting.decided(plan)
            announce(module)
            return artefacts.structured_artefact(module)

    def loops(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.place import check_scratch
        from triton_porting_kit.compiler.tiles.work import count_work

        result, plan, window = self._lowered(artefacts.structured_module(source))
        check_scratch(plan, self.chip, vector_memory(self.chip), result.scratch_bytes)
        fitting.decided(plan)
        metadata.update(name=result.name, scratch_bytes=window.bytes, shared=0)
        if result.promises:
            metadata["promises"] = result.promises
        with defects.blamed("loops", metadata):
            loops = artefacts.parse_mlir(result.text)
            count_work(loops, self.chip)
            return artefacts.mlir_artefact(loops)

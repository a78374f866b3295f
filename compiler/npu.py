"""The pipeline for a chip with on-chip memory: that of the CPU, with stages that move tiles to local memories."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton_porting_kit.abi.header import INCLUDE
from triton_porting_kit.chips import ChipDescription
from triton_porting_kit.compiler.cpp.header import CppHeader
from triton_porting_kit.compiler.cpp.stages import CPP_COMMAND, cpp_stages
from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.compiler.tiles import planning
from triton_porting_kit.compiler.tiles.memories import SCRATCH_ALIGNMENT, caches_of_core, vector_memory

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.npu.core import Window
    from triton_porting_kit.compiler.tiles.passes import TilePass
    from triton_porting_kit.compiler.tiles.plan import Plan


def npu_pipeline(
    chip: ChipDescription,
    *,
    core: CpuTarget | None = None,
    fuse_multiply_add: bool = True,
    threads: int = 1,
    num_stages: int = 2,
    passes: Sequence[str] | None = None,
    own_passes: Mapping[str, TilePass] | None = None,
) -> Pipeline:
    """``ttir`` → ``structured`` → ``tiles`` → ``placed`` → ``loops`` → ``llir`` → ``obj`` for a chip.

    `core` is the instruction set of the cores: that of this machine by default, on which the virtual chip runs. The
    other parameters are those of `cpu_pipeline`; `num_stages` is Triton's option. `passes` are the names of the
    passes of the stage ``tiles``, in their order, and `own_passes` are a vendor's (`tiles.passes.tile_passes`).
    """
    target = replace(core or CpuTarget.host(), caches=caches_of_core(chip))
    named = None if passes is None else tuple(passes)
    stages = _Stages(chip, target, fuse_multiply_add, threads, num_stages, named, own_passes)
    base = cpu_pipeline(target, fuse_multiply_add=fuse_multiply_add, threads=threads)
    check = base.stages[base.index("structured")].check
    base = base.replace("loops", Stage("loops", stages.loops, base.stages[base.index("loops")].check))
    return base.insert_after("structured", Stage("placed", stages.placed, check)).insert_after(
        "structured", Stage("tiles", stages.tiles, check)
    )


def npu_cpp_command(*folders: Path | str, compiler: Sequence[str] = CPP_COMMAND) -> tuple[str, ...]:
    """A compile command that finds headers in `folders`, and ``tpk_npu.h`` behind them."""
    return (*compiler, *(f"-I{folder}" for folder in (*folders, INCLUDE)))


def npu_cpp_pipeline(
    chip: ChipDescription,
    command: Sequence[str] = (),
    *,
    header: CppHeader | None = None,
    core: CpuTarget | None = None,
    timeout: float = 300.0,
    **given: Any,
) -> Pipeline:
    """As `npu_pipeline` up to ``loops``, then ``cpp`` → ``so``: C++ against a header of intrinsics, built by `command`.

    `header` names the header and its functions, ``tpk_npu.h`` by default. `command` and `timeout` are those of
    `cpp_stages`; by default the command is the system's compiler, which finds ``tpk_npu.h``. `core` decides how wide
    vectors are, `CpuTarget.portable(64)` by default. `given` are further parameters of `npu_pipeline`.
    """
    core = core or CpuTarget.portable(64)
    front = npu_pipeline(chip, core=core, **given).until("loops")
    return Pipeline(
        (
            *front.stages,
            *cpp_stages(command or npu_cpp_command(), header=header or CppHeader(), timeout=timeout),
        )
    )


@dataclass
class _Ahead:
    """What is known of later stages: of an artefact of the stage ``tiles`` its module and its plan; of that of the
    stage ``placed``, to which the module changes, its text, and its loops, which tell what vector code keeps.
    """

    tiles: str
    module: Any
    plan: Plan
    placed: str | None = None
    lowered: tuple[Any, Window] | None = None


@dataclass(frozen=True)
class _Stages:
    """The stages of `npu_pipeline`, which has the meaning of the fields."""

    chip: ChipDescription
    target: CpuTarget
    fuse_multiply_add: bool
    threads: int
    num_stages: int
    passes: tuple[str, ...] | None
    own_passes: Mapping[str, TilePass] | None
    _local: threading.local = field(default_factory=threading.local, compare=False, repr=False)

    def tiles(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.choices import tiled
        from triton_porting_kit.compiler.tiles.passes import tile_passes

        tried: list[_Ahead] = []

        def has_room(module: Any, plan: Plan) -> bool:
            ahead = self._place(_Ahead(str(artefacts.structured_artefact(module)), module, plan))
            tried.append(ahead)
            return self._make_room(ahead, moves=True)

        passes = tile_passes(self.passes, self.own_passes)
        with defects.blamed("tiles", metadata):
            module, plan = tiled(
                lambda: artefacts.structured_module(source), self.chip, self.num_stages, has_room, passes
            )
            known = next((ahead for ahead in tried if ahead.module is module), None)
            self._local.ahead = known or _Ahead(str(artefacts.structured_artefact(module)), module, plan)
            return self._local.ahead.tiles

    def _place(self, ahead: _Ahead) -> _Ahead:
        """The stage ``placed``."""
        from triton_porting_kit.compiler import artefacts
        from triton_porting_kit.compiler.tiles.announce import announce
        from triton_porting_kit.compiler.tiles.place import place

        place(ahead.module, self.chip, ahead.plan)
        announce(ahead.plan.program)
        ahead.placed = str(artefacts.structured_artefact(ahead.module))
        return ahead

    def _known(self) -> _Ahead | None:
        found: _Ahead | None = getattr(self._local, "ahead", None)
        return found

    def _lowered(self, module: Any, plan: Plan) -> tuple[Any, Window]:
        """The loops of a module of the stage ``placed``, and the window that they are for."""
        from triton_porting_kit.compiler.loops import lower_to_loops
        from triton_porting_kit.compiler.loops.npu.core import Window

        vector = vector_memory(self.chip)
        start = self.chip.window[vector.name]
        if not plan.shares:
            start += plan.used(vector.name, aligned=SCRATCH_ALIGNMENT)
        window = Window(self.chip.window, start, self.chip.window_bytes, self.chip.digest)
        result = lower_to_loops(
            module,
            self.target,
            program=plan.program,
            fuse_multiply_add=self.fuse_multiply_add,
            threads=self.threads,
            window=window,
        )
        return result, window

    def _make_room(self, ahead: _Ahead, *, moves: bool) -> bool:
        """Write the loops, which tells what vector code keeps. Returns whether that has room: behind the buffers, or
        else with them, where their addresses allow it or, with `moves`, others do.
        """
        from triton_porting_kit.compiler import artefacts
        from triton_porting_kit.compiler.tiles.place import note_addresses, placed_plan
        from triton_porting_kit.compiler.tiles.room import room
        from triton_porting_kit.compiler.tiles.sharing import lies_above, share

        plan = ahead.plan
        ahead.lowered = self._lowered(ahead.module, plan)
        result, _ = ahead.lowered
        if result.scratch_bytes <= room(plan, self.chip):
            return True
        if result.reaches is None or not (share if moves else lies_above)(plan, self.chip, result.reaches):
            return False
        if moves:
            note_addresses(plan)
            ahead.placed = str(artefacts.structured_artefact(ahead.module))
        again = placed_plan(ahead.module)
        plan.shares, plan.program, plan.buffers = True, again.program, again.buffers
        ahead.lowered = self._lowered(ahead.module, plan)
        assert lies_above(plan, self.chip, ahead.lowered[0].reaches), "other addresses change what is kept"
        return True

    def placed(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.place import plan
        from triton_porting_kit.compiler.tiles.room import surely_fits

        known = self._known()
        if known is None or known.tiles != str(source):
            module = artefacts.structured_module(source)
            known = self._local.ahead = _Ahead(str(source), module, plan(module, self.chip))
        if known.placed is None:
            with defects.blamed("placed", metadata):
                self._place(known)
                if not surely_fits(known.plan, self.chip):
                    self._make_room(known, moves=True)
                elif planning.wanted():
                    planning.decided(known.plan)
        return known.placed

    def loops(self, source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import artefacts, defects
        from triton_porting_kit.compiler.tiles.place import check_scratch, placed_plan
        from triton_porting_kit.compiler.tiles.work import count_work

        known = self._known()
        self._local.ahead = None
        if known is None or known.placed != str(source):
            module = artefacts.structured_module(source)
            known = _Ahead("", module, placed_plan(module))
        plan = known.plan
        if known.lowered is None:
            self._make_room(known, moves=False)
        assert known.lowered is not None
        result, window = known.lowered
        check_scratch(plan, self.chip, vector_memory(self.chip), result.scratch_bytes)
        planning.decided(plan)
        metadata.update(name=result.name, scratch_bytes=window.bytes, shared=0)
        if result.promises:
            metadata["promises"] = result.promises
        with defects.blamed("loops", metadata):
            text = count_work(result.text, self.chip)
            return artefacts.Parsed(text, artefacts.parse_mlir(text))

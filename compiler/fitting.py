"""Whether a kernel's tiles fit a chip's memories, found out without generating code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips import ChipDescription
from triton_porting_kit.compiler.tiles.planning import Planned, planning


@dataclass(frozen=True)
class Fit:
    """Whether a kernel fits, and the table of its buffers; if it does not fit, with what is missing."""

    fits: bool
    text: str


def fit(structured: object, chip: ChipDescription, **given: Any) -> Fit:
    """Plan a kernel for a chip from its structured form: an artefact, or text.

    `given` are further parameters of `npu_pipeline`, such as `num_stages`; or `own_passes`, where what compiles for the
    chip is another compiler, which does not split the tiles that the kit's passes do.
    """
    from triton_porting_kit.compiler.npu import npu_pipeline
    from triton_porting_kit.compiler.tiles.errors import OutOfOnChipMemory, table

    try:
        with planning():
            npu_pipeline(chip, **given).after("structured").run(structured, {})
    except OutOfOnChipMemory as error:
        return Fit(False, str(error))
    except Planned as found:
        plan = found.plan
    used = ", ".join(
        f"{plan.used(memory.name):,} of {chip.local_bytes(memory):,} bytes of {memory.name}"
        for memory in chip.local_memories
        if plan.used(memory.name)
    )
    return Fit(
        True, "\n".join([f"{plan.kernel} fits {chip.name}: {used or 'it has no buffers'}", *table(plan)])
    )


def fits(configs: Sequence[Any], named_args: dict[str, Any], **given: Any) -> list[Any]:
    """The configurations of an autotuner whose tiles fit: a function for ``prune_configs_by``, as
    ``prune_configs_by={"early_config_prune": fits}``.

    Each is planned by the active backend, without generating code; one that does not compile for a chip with on-chip
    memory compiles as usual. If none fits, the result is the first one, whose error says what is missing.
    """
    from triton.runtime.errors import OutOfResources

    from triton_porting_kit.toolchain import compat

    run: Callable[..., Any] = compat.autotuned_kernel().run
    found = []
    for config in configs:
        try:
            with planning():
                run(**{**named_args, **given, **config.all_kwargs(), "grid": (1,), "warmup": True})
        except OutOfResources:
            continue
        except Planned:
            pass
        found.append(config)
    return found or list(configs[:1])

"""What differs between releases in Triton's AMD backend, whose passes and code generator the kit's own uses."""

from __future__ import annotations

from collections.abc import Mapping

from . import releases
from .releases import TRIED, Release

# --- architectures and options -----------------------------------------------------------------------

_ARCHITECTURES: Mapping[str, Release] = {"gfx1250": (3, 7)}
"""First release whose passes make matrix instructions for an architecture, where the oldest does not."""


def architecture_since(name: str) -> Release:
    """First release whose passes make matrix instructions for an architecture."""
    return _ARCHITECTURES.get(name, TRIED[0])


def has_architecture(name: str) -> bool:
    """Whether the installed release makes matrix instructions for an architecture."""
    return architecture_since(name) <= releases.release()


def tunes_by_architecture() -> bool:
    """Whether Triton's defaults for gfx950, gfx1100, gfx1201 and gfx1250 have what these are good at: asynchronous
    copies, transposing within threads, and the schedulers of gfx1250."""
    return releases.release() >= (3, 8)


def heeds_schedule_hints() -> bool:
    """Whether the option ``schedule_hint`` has an effect."""
    return releases.release() < (3, 8)


# --- passes ------------------------------------------------------------------------------------------

_LATEST: Release = (99, 0)
_PASSES: Mapping[str, tuple[Release, Release]] = {
    "ttir.rewrite_tensor_pointer": (TRIED[0], (3, 7)),
    "amd.ttgpuir.sink_layout_conversions": ((3, 7), _LATEST),
    "amd.ttgpuir.optimize_descriptor_encoding": ((3, 8), _LATEST),
    "amd.ttgpuir.convert_to_tensor_ops": ((3, 7), _LATEST),
    "amd.ttgpuir.insert_instruction_sched_hints": (TRIED[0], (3, 7)),
    "amd.ttgpuir.reorder_instructions": (TRIED[0], (3, 6)),
    "amd.ttgpuir.move_up_prologue_loads": ((3, 7), _LATEST),
    "amd.ttgpuir.optimize_buffer_op_ptr": ((3, 8), _LATEST),
    "amd.ttgpuir.prepare_if_combining": ((3, 7), _LATEST),
    "amd.ttgpuir.optimize_lds_usage": (TRIED[0], (3, 6)),
    "amd.ttgpuir.warp_pipeline_conversion": ((3, 7), _LATEST),
    "amd.ttgpuir.membar": ((3, 9), _LATEST),
    "ttgpuir.allocate_global_scratch_memory": ((3, 8), _LATEST),
    "amd.ttgpuir.warp_specialize_to_llvm": ((3, 7), _LATEST),
    "amd.ttgpuir.lower_instruction_sched_hints": (TRIED[0], (3, 7)),
    "convert.reconcile_unrealized_casts": ((3, 8), _LATEST),
}
"""The first and the last release whose AMD backend runs a pass, for passes that not every release has."""

_TAKE_ARCHITECTURE: Mapping[str, Release] = {
    "amd.ttgpuir.allocate_shared_memory": (3, 8),
    "amd.ttgpuir.builtin_func_to_llvmir": (3, 7),
}
"""First release in which a pass takes the architecture as its first argument, where the oldest does not."""


def runs_pass(name: str, release: Release | None = None) -> bool:
    """Whether Triton's AMD backend of a release, or of the installed one, runs a pass."""
    first, last = _PASSES.get(name, (TRIED[0], _LATEST))
    return first <= (release or releases.release()) <= last


def takes_architecture(name: str, release: Release | None = None) -> bool:
    """Whether a pass that takes the architecture in some releases does so in this one, or in the installed one."""
    return (release or releases.release()) >= _TAKE_ARCHITECTURE.get(name, TRIED[0])


# --- what the lowering can do ------------------------------------------------------------------------


def converts_fnuz_to_bf16() -> bool:
    """Whether the lowering makes instructions that convert FNUZ floats from or to bf16, also for architectures that
    have none."""
    return releases.release() < (3, 8)


def copies_rows_by_descriptor() -> bool:
    """Whether the lowering gathers and scatters rows through a tensor descriptor by gfx1250's copies."""
    return releases.release() >= (3, 8)


def copies_rank_5_by_descriptor() -> bool:
    """Whether the lowering has gfx1250's copies for tensor descriptors of five dimensions."""
    return releases.release() != (3, 8)


def exchanges_by_buffers() -> bool:
    """Whether LLVM selects buffer instructions for an atomic exchange, of any type but f64."""
    return releases.release() >= (3, 9)


# --- the code generator ------------------------------------------------------------------------------


def has_own_code_generator() -> bool:
    """Whether the code generator and the assembler are in a library of their own, with another interface."""
    return releases.release() >= (3, 9)


def asks_about_addresses() -> bool:
    """Whether libtriton's code generator takes a flag that lets it rewrite the arithmetic of addresses."""
    return releases.release() >= (3, 8)


def schedules_expertly_by_attribute() -> bool:
    """Whether functions ask by an attribute for gfx1250's expert scheduling; else the process has a switch."""
    return releases.release() >= (3, 9)


def has_true16() -> bool:
    """Whether the code generator can use gfx11's 16-bit registers; before it was not done with them."""
    return releases.release() >= (3, 9)


def combines_vectors() -> bool:
    """Whether LLVM's optimiser combines operations on vectors as Triton runs it."""
    return releases.release() < (3, 8)


def has_cluster_attribute() -> bool:
    """Whether a kernel says in an attribute how many workgroups its clusters have."""
    return releases.release() >= (3, 7)

"""Triton's passes for AMD as tables, by release of Triton, architecture and option.

The order is that of Triton's own AMD backend in each release: the effect of a pass depends on those before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.gpu import GpuPass
from triton_porting_kit.toolchain import compat


@dataclass(frozen=True)
class Row:
    """A pass in a table.

    `arguments` are names of options, and constants that are not strings. The pass is used if the option `when` is set,
    on releases of Triton that run it (`compat.amd.runs_pass`).
    """

    name: str
    arguments: tuple[str | int, ...] = ()
    when: str = ""


def select(table: Iterable[Row], options: Any, release: compat.Release | None = None) -> list[GpuPass]:
    """The passes of a table for these options, on the installed release of Triton or on another."""
    return [
        GpuPass(
            row.name,
            tuple(
                getattr(options, given) if isinstance(given, str) else given
                for given in row.arguments
                if given != "arch" or compat.amd.takes_architecture(row.name, release)
            ),
        )
        for row in table
        if compat.amd.runs_pass(row.name, release) and (not row.when or getattr(options, row.when))
    ]


CANONICALIZE, CSE, DEAD_SYMBOLS = Row("common.canonicalizer"), Row("common.cse"), Row("common.symbol_dce")

TTIR = (
    Row("common.inliner"),
    Row("ttir.rewrite_tensor_pointer"),
    Row("ttir.rewrite_tensor_descriptor_to_pointer", when="rewrite_descriptors"),
    CANONICALIZE,
    Row("ttir.combine"),
    Row("ttir.reorder_broadcast"),
    CSE,
    Row("ttir.triton_licm"),
    DEAD_SYMBOLS,
    Row("ttir.loop_unroll"),
)
"""Clean-up of the front end's output."""

DESCRIPTORS_AS_POINTERS = (
    Row("common.inliner"),
    Row("ttir.rewrite_tensor_descriptor_to_pointer"),
)
"""Before `TTIR`, for kernels with tensor descriptors that the hardware should not or cannot use."""

TTGIR = (
    Row("ttir.convert_to_ttgpuir", ("triton_target", "num_warps", "warp_size", "num_ctas")),
    Row("ttgpuir.coalesce"),
    Row("ttgpuir.f32_dot_tc", (False,)),
    Row("ttgpuir.remove_layout_conversions"),
    Row("ttgpuir.optimize_thread_locality"),
    Row("amd.ttgpuir.accelerate_matmul", ("arch", "matrix_instr_nonkdim", "kpack")),
    Row("ttgpuir.remove_layout_conversions"),
    Row("amd.ttgpuir.optimize_epilogue"),
    Row("amd.ttgpuir.optimize_dot_operands", ("arch",)),
    Row("amd.ttgpuir.hoist_layout_conversions"),
    Row("amd.ttgpuir.sink_layout_conversions"),
    Row("ttgpuir.fuse_nested_loops"),
    CANONICALIZE,
    Row("ttir.triton_licm"),
    CANONICALIZE,
    Row("amd.ttgpuir.optimize_descriptor_encoding"),
    Row("amd.ttgpuir.schedule_loops", ("num_stages",)),
    Row("amd.ttgpuir.pipeline", ("use_async_copy", "use_block_pingpong")),
    Row("amd.ttgpuir.coalesce_async_copy", ("arch",), when="use_async_copy"),
    Row("amd.ttgpuir.convert_to_tensor_ops"),
    CANONICALIZE,
    Row("amd.ttgpuir.insert_instruction_sched_hints", ("first_hint",), when="first_hint"),
    Row("amd.ttgpuir.insert_instruction_sched_hints", ("second_hint",), when="second_hint"),
    Row("ttgpuir.remove_layout_conversions"),
    Row("ttgpuir.reduce_data_duplication"),
    Row("amd.ttgpuir.in_thread_transpose", when="use_in_thread_transpose"),
    Row("ttgpuir.remove_layout_conversions", when="use_in_thread_transpose"),
    Row("amd.ttgpuir.reorder_instructions"),
    Row("amd.ttgpuir.move_up_prologue_loads"),
    Row("amd.ttgpuir.block_pingpong", ("num_stages",), when="schedule_pingpong"),
    Row("amd.ttgpuir.canonicalize_pointers", when="use_buffer_ops"),
    Row("common.canonicalizer", when="use_buffer_ops"),
    Row(
        "amd.ttgpuir.convert_to_buffer_ops",
        ("arch", "use_buffer_atomics", "buffer_ops_analyze_small_tensor_range"),
        when="use_buffer_ops",
    ),
    Row("amd.ttgpuir.optimize_buffer_op_ptr", when="use_buffer_ops"),
    Row("amd.ttgpuir.fold_true_cmpi"),
    Row("amd.ttgpuir.prepare_if_combining"),
    CANONICALIZE,
    CSE,
    DEAD_SYMBOLS,
)
"""Layouts are chosen, dots become matrix instructions, loops are pipelined, accesses become buffer operations."""

FLUSH_EXP2 = True
"""``exp2`` flushes denormals, as in Triton on AMD, whatever ``allow_flush_denorm`` is."""

WHOLE_LDS = 0
"""One workgroup may use all of the local memory."""

LLIR = (
    Row("amd.ttgpuir.update_async_wait_count", ("arch",)),
    Row("amd.ttgpuir.optimize_lds_usage", ("arch", WHOLE_LDS)),
    Row("amd.ttgpuir.warp_pipeline_conversion", ("arch",)),
    Row("convert.scf_to_cf"),
    Row("gluon.inliner"),
    Row("convert.index_to_llvmir"),
    Row("amd.ttgpuir.allocate_shared_memory", ("arch",)),
    Row("amd.ttgpuir.membar", ("arch",)),
    Row("ttgpuir.allocate_global_scratch_memory"),
    Row("amd.ttgpuir.to_llvmir", ("arch", FLUSH_EXP2)),
    Row("amd.ttgpuir.warp_specialize_to_llvm", ("arch",)),
    CANONICALIZE,
    CSE,
    Row("convert.cf_to_llvmir"),
    Row("convert.arith_to_llvmir"),
    CANONICALIZE,
    CSE,
    DEAD_SYMBOLS,
    Row("amd.ttgpuir.lower_instruction_sched_hints", ("arch", "num_stages"), when="first_hint"),
    Row("llvmir.di_scope", when="line_info"),
    Row("amd.ttgpuir.builtin_func_to_llvmir", ("arch", FLUSH_EXP2)),
    Row("convert.reconcile_unrealized_casts"),
)
"""Allocation of local memory, and the lowering to MLIR's LLVM dialect."""

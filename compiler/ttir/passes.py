"""Triton's own passes that every backend runs first."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import compat


def optimize(module: Any, *, unroll: bool = True) -> None:
    """Clean up a Triton module in place: inline, simplify, and rewrite descriptors and block pointers to pointers.

    `unroll` obeys the kernel's `loop_unroll_factor` hints. Only passes that have something to do are run: each builds
    its patterns and verifies its result, which for most kernels takes longer than the changes.
    """
    found = compat.contents(module)
    operations = found.operations
    calls = "tt.call" in operations
    loops = not operations.isdisjoint(("scf.for", "scf.while"))
    tensor_pointers = "tt.make_tensor_ptr" in operations
    structured_pointers = tensor_pointers or found.has_descriptors
    # Functions that return early can be inlined only after simplification has made them straight-line code.
    early_returns = calls and not operations.isdisjoint(("cf.br", "cf.cond_br"))
    unroll = unroll and found.has_unroll_hints
    again = structured_pointers or early_returns or unroll
    passes = [
        ("common.inliner", calls),  # also simplifies, and drops functions that are not called
        ("ttir.rewrite_tensor_pointer", tensor_pointers),
        ("ttir.rewrite_tensor_descriptor_to_pointer", found.has_descriptors),
        ("common.canonicalizer", structured_pointers or not calls),
        ("ttir.combine", True),
        ("ttir.reorder_broadcast", True),
        ("common.cse", again or not loops),  # else the last one comes right after
        ("common.licm", loops),
        ("ttir.loop_unroll", unroll),
        ("common.canonicalizer", again),
        ("common.inliner", early_returns),
        ("common.symbol_dce", early_returns),
        ("common.cse", again or loops),
    ]
    compat.run_passes(module, [name for name, wanted in passes if wanted])

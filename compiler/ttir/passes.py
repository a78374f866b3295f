"""Triton's own passes that every backend runs first."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import compat


def optimize(module: Any, *, unroll: bool = True) -> None:
    """Clean up a Triton module in place: inlined, simplified, descriptors and block pointers turned into pointers.

    `unroll` obeys the kernel's `loop_unroll_factor` hints.
    """
    compat.run_passes(
        module,
        [
            "common.inliner",
            "ttir.rewrite_tensor_pointer",
            "ttir.rewrite_tensor_descriptor_to_pointer",
            "common.canonicalizer",
            "ttir.combine",
            "ttir.reorder_broadcast",
            "common.cse",
            "common.licm",
            "common.symbol_dce",
            *(["ttir.loop_unroll"] if unroll else []),
            "common.canonicalizer",
            # Functions that had returned early may be straight lines now.
            "common.inliner",
            "common.symbol_dce",
            "common.cse",
        ],
    )

"""The cases of the demo's kernels that are compiled for other targets, where nothing is timed."""

from __future__ import annotations

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case


def suite(quick: bool) -> list[Case]:
    """One case of each kernel and type; `quick` has the same kernels on smaller shapes."""
    sizes = (512,) if quick else (512, 1024, 2048)
    rows, cols = (1823, 781) if quick else (4096, 1024)
    return [
        cases.vector_add_case(1 << (20 if quick else 24), "float32"),
        *([] if quick else [cases.softmax_case(4096, 1024, "float32")]),
        cases.softmax_case(1823, 781, "float32"),
        *(
            cases.matmul_case(size, size, size, dtype, tiles=None)
            for dtype in ("float32", "bfloat16")
            for size in sizes
        ),
        cases.layer_norm_case(rows, cols, "float32"),
        cases.layer_norm_backward_case(rows, cols, "float32"),
        cases.giou_case(64 if quick else 512, 1024, "float32"),
    ]

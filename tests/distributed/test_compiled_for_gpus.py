"""The collectives compile for GPUs, whose instructions then say the order of memory. None is run."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from triton_porting_kit.distributed import kernels


def _source(kernel: triton.JITFunction) -> ASTSource:
    constants = {"RANKS": 2, "BLOCK": 1024, "SUM": tl.float32}
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    kinds = {"group": "*i64", "words": "*i64", "signals": "*i64", "count": "i32"}
    signature = {
        name: "constexpr" if name in constants else kinds.get(name, "*fp32") for name in kernel.arg_names
    }
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    return ASTSource(kernel, signature, constexprs=places)


@pytest.mark.parametrize(
    ("target", "stage", "instructions"),
    [
        (
            GPUTarget("cuda", 90, 32),
            "ptx",
            ("red.global.sys.release.add", "ld.global.sys.acquire", "ld.volatile"),
        ),
        (
            GPUTarget("hip", "gfx942", 64),
            "amdgcn",
            ("buffer_wbl2 sc0 sc1", "buffer_inv sc0 sc1", "global_atomic_add_x2"),
        ),
    ],
    ids=["cuda", "hip"],
)
@pytest.mark.parametrize("kernel", [kernels.two_shot_kernel, kernels.ring_kernel], ids=["two_shot", "ring"])
def test_it_compiles(
    kernel: triton.JITFunction, target: GPUTarget, stage: str, instructions: tuple[str, ...]
) -> None:
    text = triton.compile(_source(kernel), target=target).asm[stage]
    for instruction in instructions:
        assert instruction in text

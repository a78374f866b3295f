"""What a kernel costs before it computes: cold compilation, generated launch code, and a launch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton

from triton_porting_kit.kernels import (
    cases,
    dropout,
    giou,
    layer_norm,
    matmul,
    softmax,
    vector_add,
)
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.matmul import Tiles
from triton_porting_kit.kernels.places import DevicePlace, Operand
from triton_porting_kit.launcher import GeneratedLauncher

from .timing import Samples, alternate, time_once

#: Per host function: a case so small that its run does not count beside compilation, and what it compiles.
COMPILED: list[tuple[Case, tuple[Any, ...]]] = [
    (cases.vector_add_case(17, "float32"), (vector_add.vector_add_kernel,)),
    (cases.softmax_case(1, 781, "float32"), (softmax.softmax_kernel,)),
    (cases.matmul_case(17, 17, 17, "float32"), (matmul.matmul_kernel,)),
    (cases.matmul_case(17, 17, 17, "bfloat16"), (matmul.matmul_kernel,)),
    (cases.giou_case(1, 17, "float32"), (giou.giou_loss_kernel,)),
    (cases.layer_norm_case(1, 781, "float32"), (layer_norm.layer_norm_forward_kernel,)),
    (
        cases.layer_norm_backward_case(1, 781, "float32"),
        (layer_norm.layer_norm_backward_kernel, layer_norm.layer_norm_reduce_kernel),
    ),
    (cases.dropout_case(17, "float32"), (dropout.dropout_kernel,)),
    # The same kernels with a small tile and a large one: compiling must not take longer for it.
    (cases.softmax_case(1, 1024, "float32"), (softmax.softmax_kernel,)),
    (cases.softmax_case(1, 32768, "float32"), (softmax.softmax_kernel,)),
    (cases.matmul_case(17, 17, 17, "float32", tiles=Tiles(32, 32, 32, 8)), (matmul.matmul_kernel,)),
    (cases.matmul_case(17, 17, 17, "float32", tiles=Tiles(128, 256, 32, 8)), (matmul.matmul_kernel,)),
]


@triton.jit
def empty_kernel(a_ptr, b_ptr, c_ptr, n):
    """Nothing, with four arguments."""


@contextmanager
def fresh_cache(variable: str = "TRITON_CACHE_DIR") -> Iterator[None]:
    """An empty folder as the cache that a variable names; the one before comes back afterwards."""
    before = os.environ.get(variable)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[variable] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[variable]
            else:
                os.environ[variable] = before


def compile_time(case: Case, kernels: tuple[Any, ...], place: DevicePlace, runs: int) -> Samples:
    """Seconds that the first call takes longer than a later one, with nothing cached in memory or on disk."""
    arrays = [place.put(operand) for operand in case.operands()]

    def call() -> None:
        case.launch(arrays)
        place.synchronize()

    seconds = []
    # One more than asked for: the first also loads libraries, and is dropped.
    for _ in range(runs + 1):
        with fresh_cache():
            for kernel in kernels:
                kernel.device_caches.clear()
            first = time_once(call)
            seconds.append(first - time_once(call))
    return Samples(tuple(seconds[1:]))


def launcher_build_time(runs: int) -> Samples:
    """Seconds to make a generated launcher for a signature that is not in the cache, where others are."""
    nowhere = SimpleNamespace(function=0, context=0)  # nothing is launched

    def make(number: int) -> None:
        types = {
            f"x{number}_ptr": "*fp32",
            "y_ptr": "*fp32",
            "out_ptr": "*fp32",
            "n": "i32",
            "BLOCK": "constexpr",
        }
        GeneratedLauncher(SimpleNamespace(signature=types, constants={}), None, nowhere)

    with fresh_cache("TPK_CACHE_DIR"):
        make(0)  # which compiles what all share
        return Samples(tuple(time_once(partial(make, number)) for number in range(1, runs + 1)))


def launch_latency(place: DevicePlace, runs: int) -> Samples:
    """Seconds from the call of an empty kernel with four arguments, one program, until it has finished."""
    a, b, c = (place.put(Operand(np.zeros(16), "float32")) for _ in range(3))

    def call() -> None:
        empty_kernel[(1,)](a, b, c, 16)
        place.synchronize()

    return alternate({"launch": call}, runs)["launch"]

"""What a kernel costs before it runs: our stages beside Triton's front end, and a start from the cache on disk."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from triton import knobs

from triton_porting_kit.kernels import (
    attention,
    cases,
    dropout,
    gelu,
    giou,
    layer_norm,
    matmul,
    rows,
    softmax,
    vector_add,
)
from triton_porting_kit.kernels.attention import AttentionTiles
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.matmul import Tiles
from triton_porting_kit.launcher import GeneratedLauncher

from .figures import Figure, measured
from .timing import Samples, time_once

GROUP = "compile"
FRONT_END, STAGES = "front end", "stages"
TILE_BAR, WARM_BAR = 1.5, 5e-3
SMALL, LARGE = Tiles(32, 32, 32, 8), Tiles(128, 256, 32, 8)
RUNS, QUICK_RUNS = 10, 4

Compiled = tuple[str, Case, tuple[Any, ...]]


def compiled() -> list[Compiled]:
    """Per host function: a case so small that its run does not count, and the kernels that it compiles."""
    tiles, square = AttentionTiles(64, 64), (17, 17, 17)
    return [
        ("vector add", cases.vector_add_case(17, "float32"), (vector_add.vector_add_kernel,)),
        ("softmax", cases.softmax_case(1, 781, "float32"), (softmax.softmax_kernel,)),
        ("matmul fp32", cases.matmul_case(*square, "float32"), (matmul.matmul_kernel,)),
        ("matmul bf16", cases.matmul_case(*square, "bfloat16"), (matmul.matmul_kernel,)),
        ("layer norm", cases.layer_norm_case(1, 781, "float32"), (layer_norm.layer_norm_forward_kernel,)),
        (
            "layer norm backward",
            cases.layer_norm_backward_case(1, 781, "float32"),
            (layer_norm.layer_norm_backward_kernel, layer_norm.layer_norm_reduce_kernel),
        ),
        ("GELU + residual", cases.gelu_residual_case(17, "float32"), (gelu.gelu_residual_kernel,)),
        ("GIoU loss", cases.giou_case(1, 17, "float32"), (giou.giou_loss_kernel,)),
        ("dropout", cases.dropout_case(17, "float32"), (dropout.dropout_kernel,)),
        (
            "attention",
            cases.attention_case(1, 128, 64, "float32", tiles=tiles),
            (attention.attention_forward_kernel,),
        ),
        (
            "attention backward",
            cases.attention_backward_case(1, 128, 64, "float32", tiles=tiles),
            (
                attention.attention_delta_kernel,
                attention.attention_backward_kv_kernel,
                attention.attention_backward_q_kernel,
            ),
        ),
        ("cumulative sum", cases.cumulative_sum_case(1, 1024, "float32"), (rows.cumulative_sum_kernel,)),
        ("row sort", cases.sort_rows_case(1, 256, "float32"), (rows.sort_kernel,)),
        # The same kernel with a small tile and a large one: compiling must not take much longer for it.
        ("matmul 32x32", cases.matmul_case(*square, "float32", tiles=SMALL), (matmul.matmul_kernel,)),
        ("matmul 128x256", cases.matmul_case(*square, "float32", tiles=LARGE), (matmul.matmul_kernel,)),
    ]


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


@contextmanager
def listening() -> Iterator[list[Any]]:
    """The times that Triton tells of each compilation, in microseconds."""
    before, heard = knobs.compilation.listener, []

    def listener(*, times: Any, **_: Any) -> None:
        heard.append(times)

    knobs.compilation.listener = listener
    try:
        yield heard
    finally:
        knobs.compilation.listener = before


@contextmanager
def timing_lookups() -> Iterator[dict[str, float]]:
    """Seconds spent in Triton's compile function, which looks into the cache, and in loading what it found."""
    import triton.compiler as compiler

    spent = {"lookup": 0.0, "load": 0.0}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - start

        return call

    compile_, load = compiler.compile, compiler.CompiledKernel._init_handles
    compiler.compile = timed("lookup", compile_)
    compiler.CompiledKernel._init_handles = timed("load", load)
    try:
        yield spent
    finally:
        compiler.compile, compiler.CompiledKernel._init_handles = compile_, load


def forget(kernels: tuple[Any, ...]) -> None:
    """Drop what is in memory of compiled kernels."""
    for kernel in kernels:
        kernel.device_caches.clear()


def _once(case: Case, kernels: tuple[Any, ...], arrays: list[Any]) -> dict[str, float]:
    """Seconds of each part of a cold start, and of a start from the disk."""

    def call() -> None:
        case.launch(arrays)

    found: dict[str, float] = {}
    with fresh_cache():
        forget(kernels)
        with listening() as heard:
            first = time_once(call)
        found["cold start"] = first - time_once(call)
        for times in heard:
            found[FRONT_END] = found.get(FRONT_END, 0.0) + times.ir_initialization * 1e-6
            found[STAGES] = found.get(STAGES, 0.0) + times.total_lowering * 1e-6
            for stage, microseconds in times.lowering_stages:
                found[f"stage {stage}"] = found.get(f"stage {stage}", 0.0) + microseconds * 1e-6
        forget(kernels)
        with timing_lookups() as spent:
            first = time_once(call)
        found["cache lookup"] = spent["lookup"]
        found["load"] = spent["load"]
        found["warm start"] = first - time_once(call)
    return found


def compile_figures(place: Any, wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """All compile figures whose names (``compile`` and the kernel's) are wanted."""
    chosen = [entry for entry in compiled() if wanted(f"compile {entry[0]}")]
    made = {name: [place.put(operand) for operand in case.operands()] for name, case, _ in chosen}
    samples: dict[str, list[dict[str, float]]] = {name: [] for name, *_ in chosen}
    # Turn by turn; the first turn also loads libraries, and is dropped.
    for turn in range(1 + (QUICK_RUNS if quick else RUNS)):
        for name, case, kernels in chosen:
            found = _once(case, kernels, made[name])
            if turn:
                samples[name].append(found)
    figures: list[Figure] = []
    for name, _, kernels in chosen:
        figures += _figures_of(name, samples[name], len(kernels))
    return figures + _tile_figure(samples)


def _figures_of(name: str, found: list[dict[str, float]], kernels: int) -> list[Figure]:
    figures = [measured(Samples(tuple(f[column] for f in found)), GROUP, name, column) for column in found[0]]
    ratios = Samples(tuple(f[STAGES] / f[FRONT_END] for f in found))
    figures.append(measured(ratios, GROUP, name, "stages / front end", unit="x"))
    beyond = Samples(tuple((f["warm start"] - f["cache lookup"]) / kernels for f in found))
    figures.append(measured(beyond, GROUP, name, "warm start beyond the lookup, per kernel", bar=WARM_BAR))
    return figures


def _tile_figure(samples: dict[str, list[dict[str, float]]]) -> list[Figure]:
    small, large = samples.get("matmul 32x32"), samples.get("matmul 128x256")
    if not small or not large:
        return []
    ratios = Samples(tuple(b[STAGES] / a[STAGES] for a, b in zip(small, large, strict=True)))
    return [measured(ratios, GROUP, "matmul 128x256 / 32x32", "stages", unit="x", bar=TILE_BAR)]


def launcher_build_figure(quick: bool) -> Figure:
    """How long it takes to make a generated launcher for a signature that is not in the cache, where others are."""
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
        runs = range(1, 1 + (QUICK_RUNS if quick else RUNS))
        samples = Samples(tuple(time_once(partial(make, number)) for number in runs))
    return measured(samples, "launch", "generated launch code", "build for another signature")

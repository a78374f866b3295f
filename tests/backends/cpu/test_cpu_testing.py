"""triton.testing, autotune and heuristics on the CPU, with torch and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cpu_kernels
import pytest
import triton
import triton.testing
from cpu_scripts import Script

Array = Callable[..., Any]

NO_TORCH = """
import sys
class NoTorch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch)
"""
WITH_TORCH = "import torch\n"


def configs(*blocks: int) -> list[Any]:
    return [triton.Config({"BLOCK": block}) for block in blocks]


@pytest.mark.parametrize("mode", ["min", "max", "mean", "median", "all"])
def test_do_bench(mode: str, array: Array) -> None:
    x = array([0.0] * 100)
    result = triton.testing.do_bench(
        lambda: cpu_kernels.add_constant[(4,)](x, 100, AMOUNT=1, BLOCK=32), warmup=1, rep=5, return_mode=mode
    )
    assert x.numpy()[0] > 3
    times = result if mode == "all" else [result]
    assert all(0 < time < 1000 for time in times)


def test_do_bench_quantiles(array: Array) -> None:
    x = array([0.0] * 100)
    low, middle, high = triton.testing.do_bench(
        lambda: cpu_kernels.add_constant[(4,)](x, 100, AMOUNT=1, BLOCK=32),
        warmup=1,
        rep=5,
        quantiles=[0.0, 0.5, 1.0],
    )
    assert 0 < low <= middle <= high


def test_cuda_graphs_are_refused() -> None:
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="requires CUDA"):
        triton.testing.do_bench_cudagraph(lambda: None)
    with pytest.raises(RuntimeError, match="NVIDIA"):
        triton.testing.do_bench_cudagraph_proton(lambda: None)


def test_autotune_restores_what_kernels_change(array: Array) -> None:
    kernel = triton.autotune(configs(16, 32, 64), key=["n"], restore_value=["x"])(
        triton.jit(cpu_kernels.add_constant.fn)
    )
    x = array([0.0] * 100)
    kernel[lambda args: (triton.cdiv(100, args["BLOCK"]),)](x, 100, AMOUNT=1)
    assert (x.numpy() == 1).all()
    assert kernel.best_config.kwargs["BLOCK"] in (16, 32, 64)
    assert len(kernel.configs_timings) == 3
    kernel[lambda args: (triton.cdiv(100, args["BLOCK"]),)](x, 100, AMOUNT=1)
    assert (x.numpy() == 2).all()
    assert len(kernel.cache) == 1


def test_autotune_resets_to_zero(array: Array) -> None:
    kernel = triton.autotune(configs(16, 32), key=["n"], reset_to_zero=["x"])(
        triton.jit(cpu_kernels.add_constant.fn)
    )
    x = array([5.0] * 64)
    kernel[lambda args: (triton.cdiv(64, args["BLOCK"]),)](x, 64, AMOUNT=1)
    assert (x.numpy() == 1).all()


def test_autotune_prunes(array: Array) -> None:
    pruned: list[int] = []

    def early(choices: list[Any], arguments: dict[str, Any], **options: Any) -> list[Any]:
        pruned.append(len(choices))
        return [choice for choice in choices if choice.kwargs["BLOCK"] <= arguments["n"]]

    kernel = triton.autotune(
        configs(16, 32, 64, 128, 256),
        key=["n"],
        prune_configs_by={
            "early_config_prune": early,
            "perf_model": lambda **arguments: abs(arguments["BLOCK"] - 32),
            "top_k": 1,
        },
    )(triton.jit(cpu_kernels.add_constant.fn))
    x = array([0.0] * 64)
    kernel[lambda args: (triton.cdiv(64, args["BLOCK"]),)](x, 64, AMOUNT=1)
    assert pruned == [5]
    assert kernel.best_config.kwargs["BLOCK"] == 32


def test_autotune_skips_a_configuration_that_does_not_fit(array: Array) -> None:
    """A configuration that asks for more threads than there are is passed over, as on a GPU."""
    choices = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}, num_warps=1 << 21)]
    kernel = triton.autotune(choices, key=["n"])(triton.jit(cpu_kernels.add_constant.fn))
    x = array([0.0] * 64)
    kernel[lambda args: (triton.cdiv(64, args["BLOCK"]),)](x, 64, AMOUNT=1)
    assert kernel.best_config.kwargs["BLOCK"] == 32


def test_heuristics(array: Array) -> None:
    kernel = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(
        triton.jit(cpu_kernels.add_constant.fn)
    )
    x = array([0.0] * 100)
    kernel[(1,)](x, 70, AMOUNT=1)
    assert (x.numpy() == [1.0] * 70 + [0.0] * 30).all()


TUNE = """
timed = []
def bench(call, quantiles):
    timed.append(call())
    return [1.0] * len(quantiles)
kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 32)], key=["n"], cache_results=True,
                         do_bench=bench)(triton.jit(add_constant.fn))
x = array([0.0] * 64)
kernel[lambda args: (triton.cdiv(64, args["BLOCK"]),)](x, 64, AMOUNT=1)
print(len(timed))
"""


def test_autotune_results_are_cached(script: Script) -> None:
    assert [script(TUNE).strip() for _ in range(2)] == ["2", "0"]


EVERYTHING = """
import triton.testing
x = {x}
run = lambda: add_constant[(4,)](x, 100, AMOUNT=0, BLOCK=32)
run()
assert triton.testing.do_bench(run, warmup=1, rep=2) > 0
kernel = triton.autotune([triton.Config({{"BLOCK": b}}) for b in (16, 32)], key=["n"])(triton.jit(add_constant.fn))
kernel[lambda args: (triton.cdiv(100, args["BLOCK"]),)](x, 100, AMOUNT=0)
"""


def test_without_torch(script: Script) -> None:
    script(EVERYTHING.format(x="array([0.0] * 100)"), before=NO_TORCH)


def test_with_torch(script: Script) -> None:
    pytest.importorskip("torch")
    script(EVERYTHING.format(x="torch.zeros(100)"), before=WITH_TORCH)


REPORT = """
import triton.testing
@triton.testing.perf_report(triton.testing.Benchmark(
    x_names=["n"], x_vals=[64, 128], line_arg="block", line_vals=[16, 32], line_names=["16", "32"],
    plot_name="adding", args={}, ylabel="GB/s", styles=[("blue", "-"), ("green", "-")]))
def benchmark(n, block):
    x = array([0.0] * n)
    run = lambda: add_constant[(triton.cdiv(n, block),)](x, n, AMOUNT=1, BLOCK=block)
    middle, low, high = triton.testing.do_bench(run, warmup=1, rep=2, quantiles=[0.5, 0.2, 0.8])
    return tuple(2 * n * 4 * 1e-6 / time for time in (middle, high, low))

frame = benchmark.run(print_data=True, save_path="{folder}", return_df=True)
assert list(frame["n"]) == [64, 128]
"""


@pytest.mark.parametrize("before", [NO_TORCH, ""])
def test_perf_report(before: str, script: Script, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    printed = script(REPORT.replace("{folder}", str(tmp_path)), before=before, MPLBACKEND="agg")
    assert "adding" in printed
    assert (tmp_path / "adding.png").stat().st_size > 1000
    assert (tmp_path / "adding.csv").read_text().startswith("n,16")

"""``torch.compile`` with Triton for CPU tensors: which configurations are tried, and products of bf16 with their bias."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from triton_porting_kit.pytorch import cpu

BF16 = torch.bfloat16
HAS_BF16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()


@pytest.fixture(scope="module", autouse=True)
def registered(inductor_cache: Path) -> Iterator[None]:
    """As `import torch` does by the entry point, which these tests do not load."""
    cpu.register()
    with torch._inductor.config.patch(fx_graph_cache=False, autotune_local_cache=False):
        yield


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, options={"cpu_backend": "triton", **options})


def code_of(function: Any, *inputs: Any) -> tuple[Any, str]:
    from torch._inductor.utils import run_and_get_code

    result, codes = run_and_get_code(function, *inputs)
    return result, "\n".join(codes)


def test_another_release_of_torch_is_said_and_breaks_no_import(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import lowering

    monkeypatch.delattr(lowering, "use_two_step_variance")
    with pytest.warns(UserWarning, match=r"variance\.py expects.*use_two_step_variance"):
        cpu._call("variance")


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, int]]]:
    """The blocks that were measured, for each kernel with several."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    found: list[list[dict[str, int]]] = []
    measure = CachingAutotuner.benchmark_all_configs

    def benchmark_all_configs(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.append([launcher.config.kwargs for launcher in self.launchers])
        return measure(self, *args, **kwargs)

    monkeypatch.setattr(CachingAutotuner, "benchmark_all_configs", benchmark_all_configs)
    return found


def test_flat_kernels_have_one_block(tried: list[Any]) -> None:
    x = torch.randn(5000)
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1)(x), x.exp() + 1)
    assert tried == []


def test_tiles_are_no_rows(tried: list[Any]) -> None:
    x, y = torch.randn(300, 200), torch.randn(200, 300)
    torch.testing.assert_close(compiled(lambda x, y: x.t() + y)(x, y), x.t() + y)
    [blocks] = tried
    assert len(blocks) > 1
    assert all(min(block.values()) >= 16 for block in blocks)


def test_columns_are_reduced_side_by_side(tried: list[Any]) -> None:
    x = torch.randn(2100, 130)
    torch.testing.assert_close(
        compiled(lambda x: x.square().sum(0))(x), x.square().sum(0), rtol=1e-4, atol=1e-3
    )
    assert tried
    assert all(block["XBLOCK"] >= 64 for blocks in tried for block in blocks)


def test_programs_that_ask_for_it_have_all_blocks(tried: list[Any]) -> None:
    x = torch.randn(5000)
    compiled(lambda x: x.exp() + 2, max_autotune_pointwise=True)(x)
    assert len(tried[0]) > 1


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([(1024,), (512,)], [(1024,)]),
        ([(32, 32), (64, 64), (16, 256), (64, 4), (1, 256)], [(64, 64), (16, 256)]),
        ([(32, 32), (32, 8)], [(32, 32)]),
        ([(4, 8), (8, 4)], [(4, 8), (8, 4)]),
        ([], []),
    ],
)
def test_blocks_of_elementwise_kernels(sizes: list[Any], kept: list[Any]) -> None:
    from triton_porting_kit.pytorch.cpu import tuning

    found = tuning.of_pointwise([dict(zip(("XBLOCK", "YBLOCK"), size, strict=False)) for size in sizes])
    assert [tuple(size.values()) for size in found] == kept


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([(2, 1024), (64, 64), (64, 4), (8, 512)], [(64, 64), (64, 4)]),
        ([(1, 8192), (1, 2048)], [(1, 8192), (1, 2048)]),
    ],
)
def test_blocks_of_reductions(sizes: list[Any], kept: list[Any]) -> None:
    from triton_porting_kit.pytorch.cpu import tuning

    found = tuning.of_reduction([{"XBLOCK": x, "R0_BLOCK": r} for x, r in sizes])
    assert [tuple(size.values()) for size in found] == kept


def test_blocks_of_reductions_with_two_kept_dimensions_stay() -> None:
    from triton_porting_kit.pytorch.cpu import tuning

    sizes = [{"XBLOCK": 64, "YBLOCK": 1, "R0_BLOCK": 4}, {"XBLOCK": 1, "YBLOCK": 64, "R0_BLOCK": 4}]
    assert tuning.of_reduction(sizes) == sizes


@pytest.mark.parametrize("dimension", [0, 1])
def test_variances_take_two_steps(dimension: int) -> None:
    x = torch.randn(1500, 1600) + 1000  # the square of the mean is a million times the variance
    result, code = code_of(compiled(lambda x: x.var(dimension)), x)
    assert "welford" not in code
    torch.testing.assert_close(result.double(), x.double().var(dimension), rtol=1e-4, atol=1e-4)


def test_variances_in_cpp_stay() -> None:
    _, code = code_of(torch.compile(lambda x: x.var(0)), torch.randn(1500, 40))
    assert "welford" in code.lower()


LAYERS = {
    "bias": (lambda: nn.Linear(64, 48), (16, 64), "none"),
    "relu": (lambda: nn.Sequential(nn.Linear(64, 48), nn.ReLU()), (16, 64), "none"),
    "gelu": (lambda: nn.Sequential(nn.Linear(64, 48), nn.GELU()), (16, 64), "gelu"),
    "gelu of a batch": (lambda: nn.Sequential(nn.Linear(64, 48), nn.GELU()), (2, 8, 64), "gelu"),
    "tanh gelu": (lambda: nn.Sequential(nn.Linear(64, 48), nn.GELU("tanh")), (16, 64), "none"),
    "one row": (lambda: nn.Sequential(nn.Linear(64, 48), nn.GELU()), (1, 64), "gelu"),
}


@pytest.mark.skipif(not HAS_BF16, reason="oneDNN has no bf16 on this processor")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_bf16_is_one_product(name: str) -> None:
    make, shape, activation = LAYERS[name]
    layer = make().to(BF16).requires_grad_(False)
    x = torch.randn(*shape).to(BF16)
    result, code = code_of(compiled(layer), x)
    assert code.count("mkldnn._linear_pointwise.default(") == 1
    assert f"'{activation}'" in code
    exact = copy.deepcopy(layer).double()(x.double())
    assert (result.double() - exact).abs().max() <= 2**-7 * exact.abs().max()


@pytest.mark.skipif(not HAS_BF16, reason="oneDNN has no bf16 on this processor")
def test_a_layer_of_bf16_trains() -> None:
    layer = nn.Sequential(nn.Linear(64, 48), nn.GELU()).to(BF16)
    x = torch.randn(16, 64).to(BF16)
    exact = copy.deepcopy(layer).double()
    for each, values in ((compiled(layer), x), (exact, x.double())):
        each(values).square().sum().backward()
    for found, right in zip(layer.parameters(), exact.parameters(), strict=True):
        assert found.grad is not None
        assert right.grad is not None
        assert (found.grad.double() - right.grad).abs().max() <= 2**-5 * right.grad.abs().max()


def product(bias: Any, x: Any, weight: Any, **factors: float) -> Any:
    return torch.addmm(bias, x, weight, **factors)


@pytest.mark.parametrize(
    ("bias", "weight", "dtype", "factors"),
    [
        ((48,), (48, 64), torch.float32, {}),
        ((16, 48), (48, 64), BF16, {}),
        ((48,), None, BF16, {}),
        ((48,), (48, 64), BF16, {"alpha": 0.5}),
    ],
    ids=["fp32", "a matrix as bias", "weight in rows", "scaled"],
)
def test_other_products_stay(bias: Any, weight: Any, dtype: Any, factors: dict[str, float]) -> None:
    x, b = torch.randn(16, 64).to(dtype), torch.randn(*bias).to(dtype)
    w = torch.randn(64, 48).to(dtype) if weight is None else torch.randn(*weight).to(dtype).t()
    result, code = code_of(compiled(lambda *args: product(*args, **factors)), b, x, w)
    assert "_linear_pointwise" not in code
    exact = product(b.double(), x.double(), w.double(), **factors)
    assert (result.double() - exact).abs().max() <= 2**-7 * exact.abs().max()


def test_the_code_in_cpp_stays() -> None:
    layer = nn.Linear(64, 48).to(BF16).requires_grad_(False)
    x = torch.randn(16, 64).to(BF16)
    result, code = code_of(torch.compile(layer), x)
    assert "_linear_pointwise" not in code
    torch.testing.assert_close(result, functional.linear(x, layer.weight, layer.bias))

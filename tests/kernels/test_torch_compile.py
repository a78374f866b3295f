"""`torch.compile` of CPU tensors by Triton kernels that the CPU backend compiles."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("cpu_backend")


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, options={"cpu_backend": "triton", "fx_graph_cache": False, **options})


def test_flattened_dimensions_and_columns() -> None:
    def function(x: Any, y: Any, index: Any) -> Any:
        both = torch.cat([x[index], y], 1).view(-1, 3, 7, 2).permute(0, 2, 1, 3).relu().contiguous()
        return both, both.sum(0)

    x, y = torch.randn(9, 24), torch.randn(50, 18)
    index = torch.randint(-9, 9, (50,))
    for found, right in zip(compiled(function)(x, y, index), function(x, y, index), strict=True):
        torch.testing.assert_close(found, right)


@pytest.mark.slow
def test_products_are_tuned() -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        return torch.relu(a @ b + c)

    a, b, c = torch.randn(96, 64), torch.randn(64, 128), torch.randn(128)
    tuned = compiled(
        function, max_autotune=True, max_autotune_gemm_backends="TRITON", benchmark_epilogue_fusion=False
    )
    torch.testing.assert_close(tuned(a, b, c), function(a, b, c), atol=1e-4, rtol=1e-4)

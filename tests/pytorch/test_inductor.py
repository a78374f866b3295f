"""``torch.compile`` for the device: right results, and no operator on the CPU."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from host_backend import NAME
from torch.nn import functional


def both(function: Any, *inputs: torch.Tensor) -> tuple[Any, Any]:
    """The results of the CPU and of the compiled function on the device."""
    compiled = torch.compile(function)
    return function(*inputs), compiled(*(x.to(NAME) for x in inputs)).cpu()


def test_pointwise_and_reduction(chip: Any) -> None:
    expected, result = both(lambda x: functional.gelu(x * 2 + 1).sum(-1), torch.randn(40, 33))
    torch.testing.assert_close(result, expected)
    assert chip.fallbacks() == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32], ids=str)
def test_products(chip: Any, dtype: torch.dtype) -> None:
    a, b, c = (torch.randn(*shape).mul(4).to(dtype) for shape in [(33, 20), (20, 17), (17,)])
    expected, result = both(lambda a, b, c: torch.addmm(c, a, b) + a @ b, a, b, c)
    torch.testing.assert_close(result, expected, atol=0.3 if dtype == torch.bfloat16 else 1e-4, rtol=2e-2)
    assert chip.fallbacks() == {}


def test_products_with_long_sums(chip: Any) -> None:
    """Inductor has a template of its own for them."""
    a, b = torch.randn(4, 600), torch.randn(600, 3)
    expected, result = both(lambda a, b: a @ b, a, b)
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)
    assert chip.fallbacks() == {}


def test_convolutional_network_trains(chip: Any) -> None:
    torch.manual_seed(0)
    host = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1, stride=2),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 4 * 4, 5),
    )
    device = copy.deepcopy(host).to(NAME)
    x, y = torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,))
    functional.cross_entropy(host(x), y).backward()
    chip.reset_fallbacks()
    torch.compile(lambda x, y: functional.cross_entropy(device(x), y))(x.to(NAME), y.to(NAME)).backward()
    for ours, theirs in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, atol=1e-5, rtol=1e-4)
    assert chip.fallbacks() == {}


@pytest.mark.parametrize("templates", [(True, False), (False, True)])
def test_products_are_not_fused_with_what_does_not_use_them(chip: Any, templates: tuple[bool, bool]) -> None:
    """Inductor would take a node as large as a fused input of the product for one that uses its result."""
    from triton_porting_kit.pytorch.inductor.codegen import Scheduling

    nodes = [
        SimpleNamespace(is_template=lambda is_template=is_template: is_template) for is_template in templates
    ]
    assert not Scheduling(None).can_fuse_horizontal(*nodes)


def test_operators_whose_shapes_only_a_call_tells(chip: Any) -> None:
    expected, result = both(lambda x: torch.histogram(x, 3).hist + 1, torch.randn(50))
    torch.testing.assert_close(result, expected)
    assert chip.fallbacks() == {"aten.histogram.bin_ct": 1}


def test_the_cpu_keeps_its_code(chip: Any) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, w).relu() @ torch.ones(6, 2)

    x, w = torch.randn(1, 2, 8, 8), torch.randn(3, 2, 3, 3)
    torch.testing.assert_close(torch.compile(function)(x, w), function(x, w))


def test_code_ahead_of_time_is_refused(chip: Any, tmp_path: Path) -> None:
    x = torch.ones(3, device=NAME)

    class Double(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    exported = torch.export.export(Double(), (x,))
    with pytest.raises(Exception, match=r"AOTInductor and cpp_wrapper are not available.*torch\.compile"):
        torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "x.pt2"))


def test_caches_depend_on_the_kit(chip: Any) -> None:
    from torch._inductor import codecache

    stock = codecache.torch_key.__wrapped__()  # type: ignore[attr-defined]
    details = codecache.FxGraphHashDetails(torch.fx.GraphModule({}, torch.fx.Graph()), [], {}, [])
    assert details.torch_version.startswith(stock)
    assert len(details.torch_version) == len(stock) + 32
    assert callable(codecache.torch_key.set)  # compile workers call it


def test_a_gradient_whose_size_depends_on_values(chip: Any) -> None:
    """Tracing it raises an exception within torch's engine, and operators run one by one then."""
    x, values = torch.randn(5, 5), torch.randn(5)
    mask = torch.eye(5, dtype=torch.bool)

    def written(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (mask,), values)

    def gradients(function: Any, device: str) -> list[torch.Tensor]:
        leaves = [t.to(device).requires_grad_() for t in (x, values)]
        (function(leaves[0], mask.to(device), leaves[1]) ** 2).sum().backward()
        return [t.grad.cpu() for t in leaves]

    for ours, theirs in zip(gradients(torch.compile(written), NAME), gradients(written, "cpu"), strict=True):
        torch.testing.assert_close(ours, theirs)

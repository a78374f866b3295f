"""Operators of the device against those of the CPU."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from host_backend import NAME

from triton_porting_kit.pytorch.operators import eager
from triton_porting_kit.pytorch.operators.convolution import convolution, convolution_backward

TYPES = [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
TYPES += [torch.float32, torch.float64, torch.complex64, torch.complex128]


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(math.prod(shape))
    wide = torch.randn(shape, generator=generator, dtype=torch.float64) * 4
    return wide.abs().to(dtype) if dtype in (torch.bool, torch.uint8) else wide.to(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_copies_keep_every_type(chip: Any, dtype: torch.dtype) -> None:
    host = values(5, 7, dtype=dtype)
    device = host.to(NAME)
    assert device.device == torch.device(NAME, 0)
    assert device.cpu().equal(host)
    assert device.t().contiguous().cpu().equal(host.t())
    assert device[1:, ::2].cpu().equal(host[1:, ::2])
    assert chip.fallbacks() == {}


@pytest.mark.parametrize(("source", "target"), itertools.product(TYPES[:-2], repeat=2), ids=str)
def test_copies_convert(chip: Any, source: torch.dtype, target: torch.dtype) -> None:
    host = values(6, 5, dtype=source)
    host = host.abs() if source.is_signed else host
    assert host.to(NAME).t().to(target).cpu().equal(host.t().to(target))


def test_copies_of_many_dimensions(chip: Any) -> None:
    host = values(2, 3, 2, 3, 2, 3, 2)
    order = (6, 0, 5, 1, 4, 2, 3)
    assert host.to(NAME).permute(order).contiguous().cpu().equal(host.permute(order))
    target = torch.zeros(2, 3, 2, 3, 2, 3, 2, device=NAME)
    target.permute(order).copy_(host.permute(order).to(NAME))
    assert target.cpu().equal(host)


def test_copies_that_need_not_block(chip: Any) -> None:
    host = values(4, 3)
    device = host.to(NAME, non_blocking=True)
    assert device.to("cpu", non_blocking=True).equal(host)
    assert device.t().to("cpu", torch.float64, non_blocking=True).equal(host.t().double())
    assert device.to(torch.int32, memory_format=torch.contiguous_format).cpu().equal(host.int())
    compiled = torch.compile(lambda x: (x * 2).to("cpu", non_blocking=True) + 1)
    assert compiled(device).equal(host * 2 + 1)


def test_copies_within_a_storage(chip: Any) -> None:
    host = values(6, 6)
    device = host.to(NAME)
    device.copy_(device.t().clone())
    assert device.cpu().equal(host.t())
    device[1:].copy_(device[:-1])
    expected = host.t().clone()
    expected[1:] = expected[:-1].clone()
    assert device.cpu().equal(expected)


def test_broadcast_and_host_copies_into_views(chip: Any) -> None:
    device = torch.zeros(4, 6, device=NAME)
    device[:, ::2] = values(3)
    device[1] = 7
    expected = torch.zeros(4, 6)
    expected[:, ::2] = values(3)
    expected[1] = 7
    assert device.cpu().equal(expected)


def test_conjugate_views(chip: Any) -> None:
    host = values(3, 4, dtype=torch.complex64)
    assert host.to(NAME).conj().cpu().equal(host.conj())
    assert host.to(NAME).conj().resolve_conj().cpu().equal(host.conj().resolve_conj())


def test_zeros_without_memory(chip: Any) -> None:
    """Derivatives of operators such as torch.sgn are such tensors."""
    x = values(3).to(NAME).requires_grad_()
    torch.sgn(x).sum().backward()
    assert x.grad.cpu().equal(torch.zeros(3))
    assert torch._efficientzerotensor(3).to(NAME).cpu().equal(torch.zeros(3))


def test_resize_keeps_elements(chip: Any) -> None:
    device = values(6).to(NAME)
    device.resize_(3, 4)
    assert device.shape == (3, 4)
    assert device.flatten()[:6].cpu().equal(values(6))


def test_compiled_operators_are_right_for_other_shapes(chip: Any) -> None:
    for shape in [(8, 16), (8, 16), (4, 16), (5, 3), (1, 3), (0, 3), (5, 3)]:
        a, b = values(*shape), values(*shape) + 1
        result = torch.div(a.to(NAME), b.to(NAME))
        assert torch.allclose(result.cpu(), a / b)
    assert chip.fallbacks() == {}


def test_numbers_need_no_compilation(chip: Any) -> None:
    x = values(9)
    for factor in (2, 2.5, -1.0, True):
        assert torch.allclose((x.to(NAME) * factor).cpu(), x * factor)
    assert (values(9, dtype=torch.int32).to(NAME) * 2.5).dtype == torch.float32
    assert chip.fallbacks() == {}


NUMBERS = {
    "add": (lambda x, n: x.add(x, alpha=n), (1.5, 0.1, 3, math.inf)),
    "add in float64": (lambda x, n: x.double().add(x.double(), alpha=n), (1.5, 0.1, 1 / 3, 1e-300)),
    "masked_fill": (lambda x, n: x.masked_fill(x > 0, n), (-0.0, 0.0, math.nan, math.nan)),
    "pow": (lambda x, n: x.pow(n), (2, 3, -1, 0)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_no_tensors_become_arguments(chip: Any, name: str) -> None:
    operator, numbers = NUMBERS[name]
    families = 0
    for place, number in enumerate(numbers):
        found, expected = operator(values(9).to(NAME), number).cpu(), operator(values(9), number)
        assert torch.allclose(found, expected, rtol=1e-6, equal_nan=True)
        assert math.isnan(number) or found.signbit().equal(expected.signbit())
        if place == 1:
            families = len(eager._families)
    assert len(eager._families) == families
    assert chip.fallbacks() == {}


def test_bounds_of_integers_are_not_rounded(chip: Any) -> None:
    x = torch.tensor([-2, 1, 5], dtype=torch.int32)
    for bound in (1, 2, 0.5, 1.5):
        assert x.to(NAME).clamp(0, bound).cpu().equal(x.clamp(0, bound))


def test_many_numbers_that_code_cannot_take_run_on_the_cpu(
    chip: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eager, "_MOST_NUMBERS", 1)
    x = values(2, 3)
    for weight in (0.25, 0.75, 0.25):
        assert torch.allclose(x.to(NAME).lerp(2 * x.to(NAME), weight).cpu(), x.lerp(2 * x, weight))
    assert list(chip.fallbacks().values()) == [1]


def test_old_code_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "_MOST_FAMILIES", 2)
    table: dict[str, list[int]] = {}
    for key in "abca":
        eager._kept(table, key, list)
    assert list(table) == ["c", "a"]


ON_TWO_DEVICES = {
    "add": lambda x, host: x + host,
    "mm": lambda x, host: x @ host,
    "linear": lambda x, host: torch.nn.functional.linear(x, host),
    "cat": lambda x, host: torch.cat([x, host]),
    "where": lambda x, host: torch.where(x > 1, x, host),
    "out": lambda x, host: torch.add(x, 1, out=host),
    "convolution": lambda x, host: torch.nn.functional.conv1d(x[None], host[None]),
    "batch norm": lambda x, host: torch.nn.BatchNorm1d(3)(x),
    "embedding": lambda x, host: torch.nn.functional.embedding(torch.tensor([1], device=NAME), host),
    "on the CPU": lambda x, host: torch.bincount(x[0].long(), host[0]),
    "random": lambda x, host: torch.normal(x, host),
}


@pytest.mark.parametrize("operator", ON_TWO_DEVICES.values(), ids=ON_TWO_DEVICES)
def test_tensors_on_two_devices_are_refused(chip: Any, operator: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        operator(torch.ones(3, 3, device=NAME), torch.ones(3, 3))


def test_tensors_of_the_host_that_torch_accepts(chip: Any) -> None:
    x = torch.arange(6.0).reshape(3, 2)
    device = x.to(NAME)
    chosen = torch.tensor([2, 0])
    assert device[chosen].cpu().equal(x[chosen])
    device[chosen] = torch.tensor(7.0)
    assert device.cpu()[chosen].eq(7).all()
    assert (device + torch.tensor(1.0)).cpu().equal(device.cpu() + 1)
    packed = torch.nn.utils.rnn.pack_padded_sequence(device, torch.tensor([3, 1]))
    assert packed.data.cpu().equal(device.cpu().flatten()[torch.tensor([0, 1, 2, 4])])


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_results_that_are_passed_are_resized(chip: Any) -> None:
    for shape in [(0,), (2, 5), (7,), (3, 3)]:
        out = torch.empty(shape, device=NAME)
        torch.abs(values(4, len(shape)).to(NAME), out=out)
        assert out.cpu().equal(values(4, len(shape)).abs())
    assert chip.fallbacks() == {}


def test_views_of_many_shapes_stay_on_the_device(chip: Any) -> None:
    for size in range(2, 24):
        host = values(size, 1).expand(size, 5)
        device = values(size, 1).to(NAME).expand(size, 5)
        assert torch.allclose(torch.atan(device).cpu(), torch.atan(host))
        rows = torch.zeros(2 * size, 3)
        moved = rows.to(NAME)
        rows[::2].sub_(host[:, :3])
        moved[::2].sub_(device[:, :3])
        assert moved.cpu().equal(rows)
    assert chip.fallbacks() == {}


def test_code_does_not_depend_on_where_a_view_begins(chip: Any) -> None:
    host = values(70, 3)
    device = host.to(NAME)
    family = len(eager._families)
    for row in range(40):
        torch.expm1(device[row], out=device[row + 30])
        torch.expm1(host[row], out=host[row + 30])
    assert torch.allclose(device.cpu(), host)
    assert chip.fallbacks() == {}
    (made,) = list(eager._families.values())[family:]
    assert len(made.exact) + len(made.general) <= 3


def test_in_place_operators_return_their_argument(chip: Any) -> None:
    x = values(4).to(NAME)
    assert x.mul_(2) is x
    assert x.cpu().equal(values(4) * 2)


def test_operators_without_code_run_on_the_cpu(chip: Any) -> None:
    matrix = values(3, 3) + 5 * torch.eye(3)
    assert torch.allclose(torch.linalg.inv(matrix.to(NAME)).cpu(), torch.linalg.inv(matrix))
    assert "aten.linalg_inv_ex.inverse" in chip.fallbacks()


@pytest.mark.parametrize(("rank", "compiled"), [(2, True), (3, False)])
def test_windows_of_average_pools_that_hang_over(chip: Any, rank: int, compiled: bool) -> None:
    """Inductor divides gradients by the size of the whole window."""
    pool = getattr(torch.nn.functional, f"avg_pool{rank}d")

    def loss(x: torch.Tensor) -> torch.Tensor:
        return pool(x, (2, 4, 3)[-rank:], (3, 2, 2)[-rank:], 1, ceil_mode=True).square().sum()

    def gradient(device: str, function: Any) -> torch.Tensor:
        x = torch.arange(180.0).reshape(1, 6, 5, 6).to(device).requires_grad_()
        function(x).backward()
        return x.grad.cpu()

    assert gradient(NAME, torch.compile(loss) if compiled else loss).allclose(gradient("cpu", loss))
    assert chip.fallbacks() == {}


def test_numbers_beside_tensors_of_one_element(chip: Any) -> None:
    result = torch.empty(1, device=NAME)
    torch.div(torch.tensor([3], device=NAME), torch.tensor(2.0), out=result)
    assert result.item() == 1.5


@pytest.mark.parametrize(("n", "k"), [(1, 64), (1, 1), (3, 64)])
def test_products_of_vectors(chip: Any, n: int, k: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(n, k), torch.randn(k, 1)
    torch.testing.assert_close((a.to(NAME) @ b.to(NAME)).cpu(), a @ b)


@pytest.mark.parametrize(("alpha", "k"), [(1, 4), (2.5, 4), (1, 1)])
@pytest.mark.parametrize("operator", ["addmm", "baddbmm", "addmv", "addbmm", "addr"])
def test_a_summand_times_0_has_no_effect(chip: Any, operator: str, alpha: float, k: int) -> None:
    """Also where it is memory that nobody wrote."""
    a, b = values(2, 3, k), values(2, k, 5)
    first, second = {
        "addmm": (a[0], b[0]),
        "baddbmm": (a, b),
        "addmv": (a[0], b[0, :, 0]),
        "addbmm": (a, b),
        "addr": (a[0, 0], b[0, 0]),
    }[operator]
    call = getattr(torch, operator)
    unwritten = torch.full_like(call(torch.zeros(()), first, second), torch.nan)
    expected = call(unwritten, first, second, beta=0, alpha=alpha)
    result = call(unwritten.to(NAME), first.to(NAME), second.to(NAME), beta=0, alpha=alpha)
    torch.testing.assert_close(result.cpu(), expected)
    assert not expected.isnan().any()


def test_integers_are_scaled_by_integers(chip: Any) -> None:
    a, b, c = (torch.arange(4).reshape(2, 2) + n for n in range(3))
    result = torch.addmm(a.to(NAME), b.to(NAME), c.to(NAME), alpha=2, beta=3)
    assert result.cpu().equal(torch.addmm(a, b, c, alpha=2, beta=3))
    assert chip.fallbacks() == {}


@pytest.mark.parametrize("gap", [2, 30])
def test_operators_on_the_cpu_see_which_arguments_are_contiguous(chip: Any, gap: int) -> None:
    """The derivative of the determinant is wrong otherwise: it decides by the argument whether to transpose."""
    wide = values(2, 4, 4 * gap)
    host, device = (x[..., ::gap].detach().requires_grad_() for x in (wide, wide.to(NAME)))
    for x in (host, device):
        torch.linalg.det(x).sum().backward()
    torch.testing.assert_close(device.grad.cpu(), host.grad)


def test_the_cpu_can_be_forbidden(chip: Any) -> None:
    chip.set_fallback("raise")
    with pytest.raises(NotImplementedError, match=r"linalg_inv_ex.*set_fallback"):
        torch.linalg.inv(torch.eye(3, device=NAME))


def test_random_numbers_come_from_the_devices_generator(chip: Any) -> None:
    torch.manual_seed(1)
    first = torch.randn(5, device=NAME).cpu()
    on_host = torch.randn(5)
    torch.manual_seed(1)
    assert torch.randn(5).equal(on_host)  # the device has drawn none of the CPU's numbers
    assert torch.randn(5, device=NAME).cpu().equal(first)
    state = chip.get_rng_state()
    second = torch.rand(3, device=NAME).cpu()
    chip.set_rng_state(state)
    assert torch.rand(3, device=NAME).cpu().equal(second)


def test_batch_norm_updates_its_statistics(chip: Any) -> None:
    host = torch.nn.BatchNorm1d(4)
    device = torch.nn.BatchNorm1d(4).to(NAME)
    x = values(10, 4)
    expected, result = host(x), device(x.to(NAME))
    result.square().sum().backward()
    assert torch.allclose(result.cpu(), expected, atol=1e-5)
    assert torch.allclose(device.running_mean.cpu(), host.running_mean)
    assert torch.allclose(device.running_var.cpu(), host.running_var)


CONVOLUTIONS = [
    (rank, *rest)
    for rank in (1, 2, 3)
    for rest in itertools.product((1, 2, 3), (0, 1, 2), (1, 2), (1, 2), (False, True), (0, 1))
]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank: int) -> None:
    """On the CPU in float64: what the device's operators are made of is the same there."""
    tried = 0
    for _, stride, pad, dilation, groups, transposed, extra in (c for c in CONVOLUTIONS if c[0] == rank):
        if extra and not (transposed and extra < max(stride, dilation)):
            continue
        kernel, sizes = [3, 2, 3][:rank], [7, 8, 6][:rank]
        x = values(2, 4, *sizes, dtype=torch.float64)
        weights = (4, 6 // groups) if transposed else (6, 4 // groups)
        w = values(*weights, *kernel, dtype=torch.float64)
        bias = values(6, dtype=torch.float64)
        rest = ([stride] * rank, [pad] * rank, [dilation] * rank, transposed, [extra] * rank, groups)
        expected = torch.ops.aten.convolution(x, w, bias, *rest)
        torch.testing.assert_close(convolution(x, w, bias, *rest), expected)
        gradient = values(*expected.shape, dtype=torch.float64)
        wanted = torch.ops.aten.convolution_backward(gradient, x, w, [6], *rest, [True] * 3)
        torch.testing.assert_close(convolution_backward(gradient, x, w, *rest, [True] * 3), tuple(wanted))
        tried += 1
    assert tried == 102


def test_indices_lie_as_compiled_code_expects(chip: Any) -> None:
    x = values(2, 3).round()
    found = torch.compile(lambda x: torch.nonzero_static(x, size=8))(x.to(NAME))
    assert found.stride() == (1, 8)
    assert found.cpu().equal(torch.nonzero_static(x, size=8))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to(NAME).to_sparse(),
        lambda x: x.to_sparse().to(NAME),
        lambda x: torch.sparse.mm(x.to_sparse_csr().to(NAME), x.to(NAME)),
    ],
    ids=["of dense", "copied", "multiplied"],
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_refused_with_a_remedy(chip: Any, make: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"dense tensors only.*to_dense"):
        make(torch.eye(3))


def test_results_that_inductor_expects_in_another_layout(chip: Any) -> None:
    """torch's meta kernel of `_embedding_bag` describes CUDA's, whose bags of offsets have other sizes: the operator
    runs on the CPU as a whole, and is not tried again."""
    weight, index, offsets = values(9, 4), torch.tensor([1, 8, 3, 3, 0]), torch.tensor([0, 3])
    operator = torch.ops.aten._embedding_bag.default
    wanted = operator(weight, index, offsets)
    for _ in range(2):
        found = operator(*(t.to(NAME) for t in (weight, index, offsets)))
        assert all(f.cpu().equal(w) for f, w in zip(found, wanted, strict=True))
    assert chip.fallbacks()["aten._embedding_bag.default"] >= 2

"""The oracle and the samples of the level `torch`."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.torch import oracle, samples, support

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")


def test_the_error_of_the_cpu_is_the_measure() -> None:
    wide = torch.linspace(1, 2, 100, dtype=torch.float64)
    same = (wide + 1e-4).float()
    assert oracle.compare(same, same, wide).differ == 0
    assert oracle.compare((wide - 5e-4).float(), same, wide).differ == 0
    assert oracle.compare((wide - 2e-3).float(), same, wide).differ == 100
    assert oracle.compare((wide - 5e-4).float(), wide.float(), wide).differ == 100


def test_what_is_exact_does_not_lessen_the_measure() -> None:
    """As rows of zeros in the gradient of an embedding."""
    wide = torch.zeros(100, 4, dtype=torch.float64)
    wide[:2] = torch.linspace(1, 2, 8, dtype=torch.float64).reshape(2, 4)
    same = (wide + 1e-4 * (wide > 1)).float()  # the first one is exact
    off = wide.clone()
    off[0, 0] += 5e-4
    assert oracle.compare(off.float(), same, wide).differ == 0
    off[0, 0] += 5e-4
    assert oracle.compare(off.float(), same, wide).differ == 1


def test_autocast_has_the_tolerance_of_its_type() -> None:
    wide = torch.linspace(1, 2, 100, dtype=torch.float64)
    near = (wide * 1.01).float()
    assert oracle.compare(near, wide.float(), wide).differ == 100
    assert oracle.compare(near, wide.float(), wide, torch.bfloat16).differ == 0
    assert oracle.compare((wide * 1.03).float(), wide.float(), wide, torch.bfloat16).differ == 100


def test_one_wrong_element_is_found() -> None:
    wide = torch.rand(50, dtype=torch.float64)
    actual = wide.float()
    actual[7] += 0.01
    found = oracle.compare(actual, wide.float(), wide)
    assert (found.differ, found.index) == (1, (7,))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_special_values_must_be_where_the_cpu_has_them(value: float) -> None:
    same = torch.tensor([1.0, value])
    assert oracle.compare(same.clone(), same, same.double()).differ == 0
    assert oracle.compare(torch.tensor([1.0, 5.0]), same, same.double()).differ == 1
    assert oracle.compare(torch.tensor([value, value]), same, same.double()).differ == 1


def test_overflow_of_the_type_is_right() -> None:
    same, wide = torch.tensor([float("inf")], dtype=torch.float16), torch.tensor([1e5], dtype=torch.float64)
    assert oracle.compare(same, same, wide).differ == 0
    assert oracle.compare(torch.tensor([3.0], dtype=torch.float16), same, wide).differ == 1


def test_integers_shapes_and_types_must_agree() -> None:
    same = torch.arange(6)
    assert oracle.compare(same.clone(), same, None).differ == 0
    assert oracle.compare(same + 1, same, None).differ == 6
    assert oracle.compare(same.view(2, 3), same, None).differ == 1
    assert oracle.compare(same.int(), same, None).differ == 1
    assert oracle.compare(None, same, None).differ == 1
    assert oracle.compare(torch.ones(3, 0), torch.ones(3, 0), None).elements == 1


def test_tensors_of_zeros_without_memory_are_read() -> None:
    zeros = torch._efficientzerotensor((3,))
    assert oracle.compare(torch.zeros(3), zeros, None).differ == 0
    assert oracle.compare(torch.ones(3), zeros, None).differ == 3


def test_complex_numbers_are_compared() -> None:
    same = torch.randn(9, dtype=torch.complex64)
    assert oracle.compare(same.clone(), same, same.to(torch.complex128)).differ == 0
    assert oracle.compare(same.conj().resolve_conj(), same, same.to(torch.complex128)).differ == 9


def test_random_tensors_have_statistics() -> None:
    one, other = torch.rand(4000), torch.rand(4000)
    assert oracle.compare_random(one, other).differ == 0
    assert oracle.compare_random(one + 0.1, other).differ
    assert oracle.compare_random(one[:10], other).differ


@pytest.mark.parametrize("name", ["add", "addmm", "nn.functional.conv2d", "cat"])
def test_layouts_keep_the_elements(name: str) -> None:
    op = support.operators()[name]
    for sample in samples.choose(op, torch.float32, ("plain", "strided", "view"), grad=False, seed=1):
        first, args, kwargs = sample.on("cpu")
        tensors = [t for t in torch.utils._pytree.tree_leaves(sample.values) if isinstance(t, torch.Tensor)]
        copies = [
            t for t in torch.utils._pytree.tree_leaves((first, args, kwargs)) if isinstance(t, torch.Tensor)
        ]
        for tensor, copy in zip(tensors, copies, strict=True):
            assert torch.equal(tensor, copy)
            assert (tensor.stride(), tensor.storage_offset()) == (copy.stride(), copy.storage_offset())
            assert tensor.data_ptr() != copy.data_ptr() or not tensor.numel()
        if "strided" in sample.name:
            assert any(not t.is_contiguous() for t in copies)
        if "view" in sample.name:
            assert all(t.storage_offset() == 3 for t in copies)
        wide = torch.utils._pytree.tree_leaves(sample.wide())
        assert all(
            t.dtype is torch.float64 for t in wide if isinstance(t, torch.Tensor) and t.is_floating_point()
        )

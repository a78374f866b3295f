"""Inputs of operators: a few of OpInfo's samples, in several layouts, on any device and in any type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from triton_porting_kit.conformance.torch import tables

PLAIN, STRIDED, VIEW = "plain", "strided", "view"
"""Layouts: as OpInfo makes it; with gaps between elements; behind other elements of a larger allocation."""

_CANDIDATES = 40
"""Samples that are looked at; some operators have thousands."""
_LARGEST = 1 << 17
"""Elements of all tensors of a sample."""
_BEFORE, _AFTER = 3, 5
"""Elements of the allocation around a view."""
_WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


@dataclass(frozen=True)
class Sample:
    """One call of an operator. Its tensors are on the CPU and are never passed to an operator."""

    name: str
    values: Any
    """Input, positional and keyword arguments."""
    process: Callable[[Any], Any]
    """What OpInfo applies to outputs before they are differentiated."""
    arguments_on_host: bool = False
    """Whether only the input moves: see `tables.ON_HOST`."""

    def on(self, device: str) -> Any:
        """A copy of the values on a device, with the same strides and offsets."""
        moved = _mapped(self.values, lambda t: _placed(t, device), device)
        return (moved[0], *self.on("cpu")[1:]) if self.arguments_on_host and device != "cpu" else moved

    def wide(self) -> Any:
        """A copy of the values on the CPU, with floats in the widest type."""
        return _mapped(self.values, _widened, "cpu", widen=True)


def choose(op: Any, dtype: Any, layouts: tuple[str, ...], *, grad: bool, seed: int) -> Iterator[Sample]:
    """A sample for each layout, spread over those that OpInfo has."""
    import torch

    torch.manual_seed(seed)
    made = islice(op.sample_inputs("cpu", dtype, requires_grad=grad), _CANDIDATES)
    small = [sample for sample in made if _elements(sample) <= _LARGEST]
    if not small:
        return
    nonempty = [sample for sample in small if _elements(sample)] or small
    step = max(len(nonempty) - 1, 0) / max(len(layouts) - 1, 1)
    for number, layout in enumerate(layouts):
        index = round(number * step)
        sample = nonempty[index]
        values = (sample.input, tuple(sample.args), dict(sample.kwargs))
        process = sample.output_process_fn_grad or (lambda output: output)
        laid = values if layout == PLAIN else _mapped(values, _LAYOUTS[layout], "cpu")
        yield Sample(f"sample {index}, {layout}", laid, process, op.name in tables.ON_HOST)


def _elements(sample: Any) -> int:
    import torch
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))


def _mapped(values: Any, function: Callable[[Any], Any], device: str, *, widen: bool = False) -> Any:
    import torch
    from torch.utils._pytree import tree_map

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return function(value).requires_grad_(value.requires_grad)
        if isinstance(value, torch.device):
            return torch.device(device)
        if widen and isinstance(value, torch.dtype):
            name = str(value).removeprefix("torch.")
            return getattr(torch, _WIDER.get(name, name))
        return value

    first, args, kwargs = tree_map(leaf, values)
    if isinstance(kwargs.get("device"), str):
        kwargs["device"] = device
    return first, args, kwargs


def _placed(tensor: Any, device: str) -> Any:
    """A copy with the same strides and offset, made by copying the whole storage."""
    import torch

    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.detach().clone().to(device)
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.detach().untyped_storage())
    moved = whole.clone() if device == "cpu" else whole.to(device)
    return moved.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _widened(tensor: Any) -> Any:
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    return tensor.detach().clone().to(getattr(torch, _WIDER.get(name, name)))


def _garbage(tensor: Any, shape: tuple[int, ...]) -> Any:
    """What surrounds the elements of a tensor: NaN, or numbers that are not in range of anything."""
    import torch

    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return torch.full(shape, float("nan"), dtype=tensor.dtype)
    return torch.full(shape, 1 if tensor.dtype is torch.bool else 77, dtype=tensor.dtype)


def _strided(tensor: Any) -> Any:
    import torch

    if tensor.dim() == 0 or tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor.detach().clone()
    wide = _garbage(tensor, (*tensor.shape[:-1], 2 * tensor.shape[-1]))
    found = wide[..., ::2]
    found.copy_(tensor.detach())
    return found


def _view(tensor: Any) -> Any:
    import torch

    if tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor.detach().clone()
    flat = _garbage(tensor, (_BEFORE + tensor.numel() + _AFTER,))
    found = flat[_BEFORE : _BEFORE + tensor.numel()].view(tensor.shape)
    found.copy_(tensor.detach())
    return found


_LAYOUTS = {STRIDED: _strided, VIEW: _view}

"""The arguments of a call of an operator: tensors apart from the rest, which can be compared."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from triton_porting_kit.pytorch.accelerator import accelerator

_EXACT = 2**53
"""Integers up to this one are numbers of float64."""

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_VARYING = _COMPARISONS | {
    *(
        "add",
        "addcmul",
        "addcdiv",
        "pow",
        "fmod",
        "remainder",
        "clamp",
        "clamp_min",
        "clamp_max",
        "masked_fill",
    ),
    *("hardtanh", "leaky_relu", "elu", "softplus", "threshold"),
    *("hardtanh_backward", "leaky_relu_backward", "elu_backward", "softplus_backward", "threshold_backward"),
    *("_foreach_add", "_foreach_sub", "_foreach_mul", "_foreach_div", "_foreach_addcmul", "_foreach_addcdiv"),
}
"""Operators whose code can take numbers as arguments. torch's code for others branches on the numbers."""

_WITH_BOOLEANS = _COMPARISONS | {"masked_fill"}
"""Operators with results or masks of booleans beside the numbers."""


_WITH_HOST_TENSORS = frozenset(
    {
        *("index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put"),
        *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
        *("_pack_padded_sequence", "_pack_padded_sequence_backward", "_ctc_loss", "_ctc_loss_backward"),
        *("_foreach_addcdiv", "_foreach_addcmul", "_foreach_copy", "copy", "tensor_split", "resize_as"),
    }
)
"""Operators that accept tensors on the host beside those of the device: indices, lengths, numbers, what they copy."""


class NotCompiled(Exception):
    """The operator must run on the host."""


class Slot(NamedTuple):
    """The position of a tensor among the tensors of a call, in place of the tensor."""

    place: int
    is_number: bool = False
    """Whether the operator takes the number in the tensor instead."""


class Float(NamedTuple):
    """A float that is equal to those with the same bits: NaN to itself, and -0.0 not to 0.0."""

    bits: bytes

    @classmethod
    def of(cls, value: float) -> Float:
        """Make it."""
        return cls(struct.pack("d", value))

    @property
    def value(self) -> float:
        """The float."""
        return float(struct.unpack("d", self.bits)[0])


def skeleton(
    operator: torch._ops.OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[torch.Tensor],
) -> tuple[Any, ...]:
    """The arguments with slots for the tensors, which are appended to `tensors`. It is hashable.

    Numbers for parameters that are tensors become tensors on the host, so that other numbers need no compilation.
    """
    number_type = _number_type((*args, *kwargs.values()))
    arguments = operator._schema.arguments
    by_name = {argument.name: argument for argument in arguments}

    def place(value: Any, argument: Any) -> Any:
        if isinstance(value, torch.Tensor):
            for index, known in enumerate(tensors):
                if known is value:
                    return Slot(index)
            tensors.append(value)
            return Slot(len(tensors) - 1)
        if isinstance(value, (int, float)) and isinstance(argument.type, torch.TensorType):
            return place(torch.tensor(value, dtype=number_type(value)), argument)
        if isinstance(value, float):
            return Float.of(value)
        if isinstance(value, (list, tuple)):
            return tuple(place(each, argument) for each in value)
        if isinstance(value, torch.Generator):
            raise NotCompiled("it draws random numbers")
        return value

    positional = tuple(place(value, arguments[i]) for i, value in enumerate(args))
    named = tuple((name, place(value, by_name[name])) for name, value in sorted(kwargs.items()))
    return (positional, named)


def _number_type(values: Iterable[Any]) -> Any:
    """The type that torch computes with in place of a Python number: float64 only where a tensor has it."""
    wide = any(isinstance(v, torch.Tensor) and v.dtype in (torch.float64, torch.complex128) for v in values)

    def choose(value: Any) -> torch.dtype:
        if isinstance(value, bool):
            return torch.bool
        if isinstance(value, int):
            return torch.int64
        return torch.float64 if wide else torch.get_default_dtype()

    return choose


def check(operator: torch._ops.OpOverload, tensors: Sequence[torch.Tensor]) -> None:
    """Raise `NotCompiled` if Inductor does not compile an operator of such tensors."""
    name = accelerator().name
    for tensor in tensors:
        if tensor.dtype.is_complex or tensor.is_quantized or tensor.layout != torch.strided:
            raise NotCompiled("Inductor compiles no complex, quantized or sparse tensors")
        if tensor.device.type != name and tensor.dim():
            check_device(operator, tensor)
            raise NotCompiled("an argument is on the host")


def check_device(operator: torch._ops.OpOverload, tensor: torch.Tensor) -> None:
    """Raise RuntimeError as torch does if the device's operator does not accept a tensor because of where it is.

    Tensors without dimensions stand for numbers. Operators that are not torch's know what they accept.
    """
    name = accelerator().name
    if tensor.device.type == name or not tensor.dim() or not operator._schema.name.startswith("aten::"):
        return
    if _base_name(operator) not in _WITH_HOST_TENSORS:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {name}:0 and "
            f"{tensor.device}! (when checking the arguments of {operator})"
        )


# --- what an operator writes -----------------------------------------------------------------------------


def passed_results(operator: torch._ops.OpOverload, static: Any) -> list[int]:
    """The places of the results that the caller passes."""
    written = {
        a.name for a in operator._schema.arguments if a.is_out and a.alias_info and a.alias_info.is_write
    }
    return [value.place for name, value in static[1] if name in written and isinstance(value, Slot)]


def written(operator: torch._ops.OpOverload, static: Any) -> set[int]:
    """The places of the tensors that the operator writes."""
    positional, named = static
    values = dict(named) | dict(zip((a.name for a in operator._schema.arguments), positional, strict=False))
    written = [
        values.get(a.name) for a in operator._schema.arguments if a.alias_info and a.alias_info.is_write
    ]
    return {
        slot.place for slot in torch.utils._pytree.tree_leaves(written, is_leaf=_is_slot) if _is_slot(slot)
    }


def only_makes_results(operator: torch._ops.OpOverload) -> bool:
    """Whether it can run once more: all that it writes are results that the caller passes."""
    return all(a.is_out for a in operator._schema.arguments if a.alias_info and a.alias_info.is_write)


def _is_slot(value: Any) -> bool:
    return isinstance(value, Slot)


# --- numbers that vary -----------------------------------------------------------------------------------


def with_varying_numbers(
    operator: torch._ops.OpOverload, static: tuple[Any, ...], tensors: list[torch.Tensor]
) -> tuple[tuple[Any, ...], list[torch.Tensor]] | None:
    """The skeleton with slots for the numbers, too, and the tensors with those of the numbers.

    None if there are none that the code can take.
    """
    takes = _takes_numbers(operator)
    if not takes or not _are_floats(operator, tensors):
        return None
    all_tensors = list(tensors)

    def place(value: Any) -> Any:
        if isinstance(value, Float) or (type(value) is int and abs(value) <= _EXACT):
            number = value.value if isinstance(value, Float) else float(value)
            all_tensors.append(torch.tensor(number, dtype=torch.float64))
            return Slot(len(all_tensors) - 1, is_number=True)
        return tuple(place(each) for each in value) if type(value) is tuple else value

    positional, named = static
    names = [argument.name for argument in operator._schema.arguments]
    varying = (
        tuple(place(v) if names[i] in takes else v for i, v in enumerate(positional)),
        tuple((name, place(v) if name in takes else v) for name, v in named),
    )
    return (varying, all_tensors) if len(all_tensors) > len(tensors) else None


def without_floats(static: Any) -> Any:
    """The skeleton with the type in place of floats."""
    if isinstance(static, Float):
        return float
    return tuple(without_floats(each) for each in static) if type(static) is tuple else static


@functools.cache
def _takes_numbers(operator: torch._ops.OpOverload) -> frozenset[str]:
    """The names of the arguments that may vary: `Scalar` in torch's schemas, also lists of them."""
    if _base_name(operator) not in _VARYING:
        return frozenset()
    return frozenset(a.name for a in operator._schema.arguments if "number" in str(a.type).lower())


def _base_name(operator: torch._ops.OpOverload) -> str:
    namespace, _, name = operator._schema.name.partition("::")
    return name.rstrip("_") if namespace == "aten" else ""


def _are_floats(operator: torch._ops.OpOverload, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether all tensors of numbers are floats, as the numbers are for Inductor, and the numbers precise enough."""
    types = {t.dtype for t in tensors}
    if _base_name(operator) in _WITH_BOOLEANS:
        types -= {torch.bool}
    if not types or not all(dtype.is_floating_point for dtype in types):
        return False
    if torch.float64 not in types:
        return True
    from torch._inductor import config

    return bool(getattr(config, "_use_fp64_for_unbacked_floats", False))

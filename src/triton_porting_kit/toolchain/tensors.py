"""torch tensors as kernel arguments. This module never imports torch."""

from __future__ import annotations

import sys
from typing import Any


def refusal(value: Any) -> str | None:
    """Why a torch tensor cannot be a kernel's argument, and what to pass instead; None if it can, or is not a tensor.

    A kernel only gets an address, so properties of the elements that are not in memory are lost, such as those of a
    view that is negated on reading.
    """
    torch: Any = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())  # torch may be partially imported
    if not isinstance(value, tensor):
        return None
    kind = type(value).__name__
    if value.device.type == "meta":
        return "a meta tensor has no data; make it on a device"
    if kind in ("FakeTensor", "FunctionalTensor"):
        return f"a {kind} has no data, as torch.compile traces with it; call the kernel from a custom op"
    if torch._C._functorch.is_functorch_wrapped_tensor(value) or torch._is_functional_tensor(value):
        return "a tensor inside of torch.func (vmap, grad, ...) has no data; call the kernel from a custom op"
    if value.layout is not torch.strided:
        return f"a tensor of layout {value.layout} is not stored as one array; pass its parts, or .to_dense()"
    if value.is_quantized:
        return f"{value.dtype} is a quantized type; pass .int_repr()"
    if value.is_conj():
        return "the conjugation of the elements is pending; pass .resolve_conj()"
    if value.is_neg():
        return "the negation of the elements is pending; pass .resolve_neg()"
    if value.is_complex():
        return f"kernels have no type like {value.dtype}; pass torch.view_as_real() of it"
    if value.numel() and not value.data_ptr():
        return f"the {kind} of {value.numel()} elements has no memory, as its storage was freed or resized"
    return None


def elsewhere(value: Any) -> str | None:
    """Why a torch tensor cannot be an argument of a kernel on the host; None if it can, or is not a tensor."""
    torch: Any = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())
    if not isinstance(value, tensor) or value.device.type == "cpu":
        return None
    return (
        f"the tensor is on device {str(value.device)!r}, but Triton's active backend runs kernels on the CPU; "
        "pass .cpu() of it, or select the tensor's backend, for instance by TRITON_DEFAULT_BACKEND"
    )

"""The oracle: torch's CPU operators in float64, with the error of those in the type itself as the measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.comparison import Comparison, of_wrong
from triton_porting_kit.conformance.types import Array

TIMES = 8.0
"""Times the error of torch's CPU operator in the same type that a result may have, on top of the tolerance."""
_STATISTICS = 64
"""Random outputs of fewer elements have no statistics."""
_DEVIATIONS = 6.0
"""Standard errors that the mean of a random output may be off."""


def compare(actual: Any, same: Any, wide: Any | None, computed_in: Any = None) -> Comparison:
    """Compare a tensor with the CPU's result in the same type, and in a wider type if there is one.

    `computed_in`: the type whose tolerance a result of floats has; None: its own.
    """
    from torch.testing._comparison import default_tolerances

    if different := _form(actual, same):
        return different
    actual, same = _host(actual), _host(same)
    if not same.dtype.is_floating_point and not same.dtype.is_complex:
        values, expected = actual.numpy(), same.numpy()
        return _at_least_one(of_wrong(values != expected, values, expected, "identical"))
    rtol, atol = default_tolerances(computed_in or same.dtype)
    values, near = _float64(actual), _float64(same)
    exact = near
    if wide is not None and wide.shape == same.shape and wide.dtype.is_complex == same.dtype.is_complex:
        exact = _float64(_host(wide))
    with np.errstate(all="ignore"):
        own = np.abs(near - exact)
        own = np.where(np.isfinite(own), own, 0.0)
        # Of elements that are exact, as in rows of an embedding's gradient that no index names, nothing is learned.
        typical = np.sqrt(np.mean(own[own > 0] ** 2)) if own.any() else 0.0
        allowed = atol + rtol * np.abs(exact) + TIMES * np.maximum(own, typical)
        close = np.isfinite(exact) & (np.abs(values - exact) <= allowed)
        right = close | (values == near) | (values == exact)
        right |= np.isnan(values) & (np.isnan(near) | np.isnan(exact))
    kind = str(same.dtype).removeprefix("torch.")
    reference = "float64" if exact is not near else kind
    rule = f"within {atol:g} + {rtol:g} |x| + {TIMES:g} errors of torch's CPU in {kind}, of its result in {reference}"
    return _at_least_one(of_wrong(~right, values, exact, rule))


def compare_form(actual: Any, same: Any) -> Comparison:
    """Compare shape and type of a tensor whose elements are not specified."""
    return _form(actual, same) or Comparison(max(same.numel(), 1), 0, "the same shape and type")


def compare_random(actual: Any, same: Any) -> Comparison:
    """Compare shape and type of a random tensor, and its mean if it has many elements."""
    if different := _form(actual, same):
        return different
    actual, same = _host(actual), _host(same)
    values, expected = _float64(actual).ravel(), _float64(same).ravel()
    rule = "shape, type and rough statistics of random elements"
    finite = np.isfinite(values).all() and np.isfinite(expected).all()
    if values.size < _STATISTICS or not finite:
        return Comparison(max(values.size, 1), 0, rule)
    off = abs(values.mean() - expected.mean())
    spread = max(float(values.std()), float(expected.std()))
    if off <= _DEVIATIONS * spread * np.sqrt(2 / values.size) + 1e-6:
        return Comparison(values.size, 0, rule)
    return Comparison(
        values.size, values.size, rule, None, (0,), f"of mean {values.mean():g}", f"{expected.mean():g}"
    )


def _form(actual: Any, same: Any) -> Comparison | None:
    """The comparison of tensors of different shapes or types; None if they agree."""
    import torch

    if not isinstance(actual, torch.Tensor):
        return _wrong(f"a {type(actual).__name__}", "a tensor", "a tensor")
    if actual.shape != same.shape:
        return _wrong(f"of shape {tuple(actual.shape)}", f"of shape {tuple(same.shape)}", "the same shape")
    if actual.dtype != same.dtype:
        return _wrong(f"of type {actual.dtype}", f"of type {same.dtype}", "the same type")
    return None


def _wrong(actual: str, expected: str, rule: str) -> Comparison:
    return Comparison(1, 1, rule, actual=actual, expected=expected)


def _host(tensor: Any) -> Any:
    import torch

    found = tensor.detach().cpu()
    if found._is_zerotensor():  # it has no memory, and NumPy refuses it
        return torch.zeros(found.shape, dtype=found.dtype)
    if found.layout is not torch.strided:
        found = found.to_dense()
    if found.is_quantized:
        found = found.dequantize()
    return found.resolve_conj().resolve_neg()


def _float64(tensor: Any) -> Array:
    import torch

    if tensor.dtype.is_complex:
        return np.asarray(torch.view_as_real(tensor.to(torch.complex128)).numpy())
    return np.asarray(tensor.to(torch.float64).numpy())


def _at_least_one(found: Comparison) -> Comparison:
    """An empty tensor of the right shape is one thing compared."""
    return found if found.elements else Comparison(1, 0, "the same shape")

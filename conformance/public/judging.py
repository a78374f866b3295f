"""Runs a case in the process that has its package, compares it with float64, and measures it."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from triton_porting_kit.conformance.comparison import Comparison, of_wrong
from triton_porting_kit.conformance.public.entries import Case

TYPES = {
    torch.float64: 1e-10,
    torch.float32: 8e-6,
    torch.bfloat16: 1.6e-2,
    torch.float16: 4e-3,
}
"""By the type of a case, what a result may be off, as a part of its value and of the root mean square of its tensor:
64 epsilons of float32, two of bfloat16, four of float16."""
ERRORS = 8.0
"""Times the error of torch's own operators in the same type that a result may have beside that."""
BUDGET = 1.0
"""Seconds for measuring one function."""
RUNS = 10
DEVICE = "cuda"
"""Where kernels run: CUDA, or what `as_cuda` puts in its place."""


def inputs_of(case: Case, *, large: bool = False) -> dict[str, Any]:
    """The inputs, on the CPU: those that are compared, or the large ones.

    They depend on the names of collection and entry, and on the type."""
    entry = case.entry
    seed = zlib.crc32(f"{case.collection.name}/{entry.name}".encode())
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, case.type)
    return {name: make(generator, kind) for name, make in (entry.large if large else entry.inputs).items()}


def leaves(found: Any) -> list[Any]:
    """The tensors in a result."""
    if isinstance(found, torch.Tensor):
        return [found]
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        return [leaf for item in found for leaf in leaves(item)]
    return []


def differentiable(case: Case, values: dict[str, Any]) -> dict[str, Any]:
    """Copies of the inputs; those whose gradients are wanted are leaves."""
    copies = {name: value.detach().clone() for name, value in values.items()}
    if case.gradient:
        for name in case.entry.gradients:
            copies[name].requires_grad_()
    return copies


def run(case: Case, function: Callable[..., Any], values: dict[str, Any], weights: list[Any]) -> list[Any]:
    """Results of a function, and gradients of its inputs for `weights`, the gradients of its results.

    `weights` is filled by the first call, from float64: a weight for each result that depends on an input.
    """
    found = leaves(function(**values))
    if not case.gradient:
        return found
    wanted = [value for value in found if value.requires_grad]
    if not weights:
        generator = torch.Generator().manual_seed(1)
        kind = getattr(torch, case.type)
        for value in wanted:
            random = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            weights.append(random.to(kind) if value.ndim else torch.ones((), dtype=torch.float64))
    given = [w.to(device=v.device, dtype=v.dtype) for w, v in zip(weights, wanted, strict=True)]
    sources = [values[name] for name in case.entry.gradients]
    return [*found, *torch.autograd.grad(wanted, sources, given)]


def expected_of(case: Case, values: dict[str, Any], weights: list[Any]) -> tuple[list[Any], list[Any] | None]:
    """The results of the reference in float64, and in the type of the case where torch has its operators."""
    wide = {n: v.double() if v.is_floating_point() else v for n, v in values.items()}
    exact = run(case, case.entry.reference, differentiable(case, wide), weights)
    try:
        near = run(case, case.entry.reference, differentiable(case, values), weights)
    except (RuntimeError, NotImplementedError):
        return exact, None
    return exact, near


class ReferenceFailed(Exception):
    """The suite's own reference raised an exception."""


def judge(case: Case) -> Iterator[tuple[str, Comparison]]:
    """Compare all results of a case. The items are named by their position. Raises `ReferenceFailed`."""
    values, weights = inputs_of(case), []  # type: dict[str, Any], list[Any]
    try:
        exact, near = expected_of(case, values, weights)
    except Exception as error:
        raise ReferenceFailed(f"{type(error).__name__}: {error}") from error
    on_device = {name: value.to(DEVICE) for name, value in values.items()}
    found = run(case, case.entry.call, differentiable(case, on_device), weights)
    if len(found) != len(exact):
        text = f"{len(found)} tensors"
        yield "results", Comparison(1, 1, "as many results", actual=text, expected=str(len(exact)))
        return
    count = len(exact) - (len(case.entry.gradients) if case.gradient else 0)
    names = [f"result {k}" for k in range(count)]
    names += [f"gradient of {name}" for name in case.entry.gradients] if case.gradient else []
    for number, name in enumerate(names):
        same = near[number] if near is not None else None
        yield name, compare(case, found[number], exact[number], same)


def compare(case: Case, actual: Any, exact: Any, near: Any | None) -> Comparison:
    """Compare a tensor with float64, or with integers."""
    if actual.shape != exact.shape:
        return Comparison(
            1, 1, "the same shape", actual=f"of shape {tuple(actual.shape)}", expected=str(tuple(exact.shape))
        )
    values, wanted = _host(actual), _host(exact)
    if not exact.is_floating_point() or case.entry.steps:
        off = np.abs(values - wanted)
        rule = f"off by at most {case.entry.steps}" if case.entry.steps else "identical"
        return _some(of_wrong(~(off <= case.entry.steps), values, wanted, rule))
    relative = TYPES[getattr(torch, case.type, torch.float32)] if case.type in _floats() else 8e-6
    relative *= case.entry.tolerance
    with np.errstate(all="ignore"):
        finite = wanted[np.isfinite(wanted)]
        typical = np.sqrt(np.mean(finite**2)) if finite.size else 0.0
        own = np.abs(_host(near) - wanted) if near is not None else np.zeros_like(wanted)
        own = np.where(np.isfinite(own), own, 0.0)
        allowed = relative * (np.abs(wanted) + typical) + ERRORS * own
        right = np.abs(values - wanted) <= allowed
        right |= (values == wanted) | (np.isnan(values) & np.isnan(wanted))
        # What is too large for the type is infinite in it.
        limit = torch.finfo(actual.dtype).max if actual.is_floating_point() else np.inf
        right |= np.isinf(values) & (np.abs(wanted) > limit * (1 - relative)) & (values * wanted > 0)
    rule = (
        f"within {relative:g} (|x| + {typical:.3g}) + {ERRORS:g} errors of torch in {case.type}, of float64"
    )
    return _some(of_wrong(~right, values, wanted, rule))


def _floats() -> set[str]:
    return {str(kind).removeprefix("torch.") for kind in TYPES}


def _host(tensor: Any) -> Any:
    return tensor.detach().to("cpu").to(torch.float64).numpy()


def _some(found: Comparison) -> Comparison:
    return found if found.elements else Comparison(1, 0, "the same shape")


def times(case: Case) -> dict[str, float]:
    """Seconds of the package's function on the large inputs.

    ``eager`` is that of torch's operators on the same device, where the entry has a counterpart there."""
    values = inputs_of(case, large=True)
    on_device = {name: value.to(DEVICE) for name, value in values.items()}
    entry, weights = case.entry, []  # type: Any, list[Any]
    run(case, entry.reference, differentiable(case, values), weights)
    found = {"seconds": _fastest(lambda: run(case, entry.call, differentiable(case, on_device), weights))}
    if entry.eager:
        with suppress(RuntimeError, NotImplementedError):  # torch has no operator for the type
            found["eager"] = _fastest(
                lambda: run(case, entry.reference, differentiable(case, on_device), weights)
            )
    return found


def _fastest(call: Callable[[], Any]) -> float:
    """Seconds of the fastest call. With one thread on the CPU, its time on the processor: other processes may run."""
    alone = torch.get_num_threads() == 1 and torch.empty(0, device=DEVICE).device.type == "cpu"
    clock = time.process_time if alone else time.perf_counter
    call()
    best, begin = float("inf"), time.perf_counter()
    for _ in range(RUNS):
        start = clock()
        call()
        torch.cuda.synchronize()
        best = min(best, clock() - start)
        if time.perf_counter() - begin > BUDGET:
            break
    return best

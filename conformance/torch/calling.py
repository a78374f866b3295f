"""Calling operators: eager or compiled, forward, backward or with an output, and comparing what they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.comparison import Comparison
from triton_porting_kit.conformance.torch import oracle, support
from triton_porting_kit.conformance.torch.samples import Sample

Call = Callable[[Any], Any]
"""Takes a sample's values and gives a tree of results."""


@dataclass(frozen=True)
class Reference:
    """What torch's CPU operators give for a sample."""

    same: Any
    """In the sample's own type."""
    wide: Any
    """In the widest type; None if the operator does not take it."""
    random: bool = False
    form_only: bool = False
    """The elements are not specified."""
    indices: int = -1
    """The result that holds indices of elements that may be equal, of which any is right. Negative: none."""
    computed_in: Any = None
    """The type that operators compute in under autocast."""


class Refused(Exception):
    """Torch's CPU operator does not take a sample."""


def forward(function: Any) -> Call:
    """The outputs of a function, and its inputs, which it may change."""

    def call(values: Any) -> Any:
        from torch import no_grad

        first, args, kwargs = values
        with no_grad():
            found = function(first, args, kwargs)
        return found, values

    return call


def backward(function: Any, process: Callable[[Any], Any], seed: int) -> Call:
    """The outputs of a function and the gradients of its inputs, for random gradients of the outputs."""

    def call(values: Any) -> Any:
        import torch
        from torch.utils._pytree import tree_leaves

        found = tree_leaves(process(function(*values)))
        outputs = [out for out in found if isinstance(out, torch.Tensor) and out.requires_grad]
        inputs = [
            leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        if not outputs:
            raise Refused("no output has a gradient")
        source = torch.Generator().manual_seed(seed)
        directions = [_direction(out, source) for out in outputs]
        gradients = torch.autograd.grad(outputs, inputs, directions, allow_unused=True)
        whole = [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs, strict=True)]
        return [out.detach() for out in outputs], whole

    return call


def _direction(output: Any, source: Any) -> Any:
    """Random numbers of an output's shape: the same ones in each type and on each device."""
    import torch

    kind = torch.complex64 if output.dtype.is_complex else torch.float32
    made = torch.randn(output.shape, generator=source, dtype=kind)
    return made.to(output.dtype).to(output.device)


def compiled(function: Any, device: str, *, stock: bool = False) -> Any:
    """A function compiled anew."""
    import torch

    torch._dynamo.reset()

    def entry(*values: Any) -> Any:
        return function(*values)

    return torch.compile(entry, dynamic=False, options=support.compile_options(device, stock=stock))


def reference(call: Call, sample: Sample, seed: int, *, form_only: bool = False) -> Reference:
    """What the CPU gives. Raises `Refused` if torch's CPU operator does not take the sample."""
    import torch

    torch.manual_seed(seed)
    before = torch.get_rng_state()
    same = _seeded(call, sample.on("cpu"), seed)
    drew = not torch.equal(before, torch.get_rng_state())
    if form_only:
        return Reference(same, None, form_only=True)
    if drew:
        return Reference(same, None, random=True)
    try:
        wide = _seeded(call, sample.wide(), seed)
    except Refused:
        return Reference(same, None)
    return Reference(same, wide)


def _seeded(call: Call, values: Any, seed: int) -> Any:
    import torch

    torch.manual_seed(seed)
    try:
        return call(values)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def comparisons(found: Any, expected: Reference) -> Iterator[tuple[str, Comparison]]:
    """The comparison of each tensor of a tree of results, with a name."""
    import torch
    from torch.utils._pytree import tree_leaves

    actual, same, wide = tree_leaves(found), tree_leaves(expected.same), tree_leaves(expected.wide)
    if len(actual) != len(same):
        rule = "the same number of results"
        yield "results", Comparison(1, 1, rule, actual=f"one of {len(actual)}", expected=f"{len(same)}")
        return
    if len(wide) != len(same):
        wide = [None] * len(same)
    for number, (one, near, exact) in enumerate(zip(actual, same, wide, strict=True)):
        if isinstance(near, torch.Tensor):
            form_only = expected.form_only or number == expected.indices
            yield f"result {number}", _compare(one, near, exact, form_only, expected)
        elif isinstance(near, bool | int) and not expected.random:
            differ = int(one != near)
            yield f"result {number}", Comparison(1, differ, "equal", actual=repr(one), expected=repr(near))


def _compare(one: Any, near: Any, exact: Any, form_only: bool, expected: Reference) -> Comparison:
    import torch

    if form_only:
        return oracle.compare_form(one, near)
    if expected.random:
        return oracle.compare_random(one, near)
    wide = exact if isinstance(exact, torch.Tensor) else None
    return oracle.compare(one, near, wide, expected.computed_in)


# --- failures of torch's own -------------------------------------------------------------------------


def stock_failure(call: Call, sample: Sample, expected: Reference, error: Exception | None) -> str:
    """How Inductor's C++ code for the CPU fails on a sample in the same way; empty if it does not.

    `error`: what the backend failed with; None for a wrong result. `call` is compiled with Inductor's C++ code.
    """
    import torch

    torch.manual_seed(0)
    try:
        found = call(sample.on("cpu"))
    except Exception as own:
        return shown(own) if error is not None and _essence(own) == _essence(error) else ""
    if error is not None:
        return ""
    wrong = [f"{what}: {found.message}" for what, found in comparisons(found, expected) if found.differ]
    return wrong[0] if wrong else ""


def shown(error: BaseException) -> str:
    """An exception in a line: type, first line, and the last one if the first only names a place."""
    inner = innermost(error)
    lines = str(inner).strip().splitlines() or [""]
    text = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    return f"{type(inner).__name__}: {text}"[:500]


def innermost(error: BaseException) -> BaseException:
    """The exception that those of torch's compiler wrap."""
    while isinstance(inner := getattr(error, "inner_exception", None), BaseException):
        error = inner
    return error


def _essence(error: BaseException) -> str:
    """Type and first line of an exception, without numbers and names of generated functions."""
    return re.sub(r"\W*\w*\d\w*", "", shown(error))

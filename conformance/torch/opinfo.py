"""Checks of the operators that torch's database (OpInfo) describes, compiled by Inductor and eager."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import BY_BACKEND, Context
from triton_porting_kit.conformance.profile import TORCH_DTYPES as DTYPES
from triton_porting_kit.conformance.torch import calling, support, tables
from triton_porting_kit.conformance.torch.calling import Call, Reference, Refused
from triton_porting_kit.conformance.torch.fallbacks import Fallbacks
from triton_porting_kit.conformance.torch.samples import PLAIN, STRIDED, VIEW, Sample, choose

SECONDS = 180.0
_OTHERS = ("int64", "bool", "complex64")
"""Types of operators that do not take float32."""
_ALL = (PLAIN, PLAIN, STRIDED, VIEW)


@dataclass(frozen=True)
class Mode:
    """A way to run an operator."""

    need: str
    """Of the torch device, as `support.applies` takes it."""
    compiles: bool
    kind: str
    """``forward``, ``backward`` or ``out``."""
    layouts: tuple[str, ...]
    requirement: str


MODES = {
    "compiled_forward": Mode(
        support.COMPILED, True, "forward", _ALL, "Inductor's code for {} gives the operator's results on {}."
    ),
    "compiled_backward": Mode(
        support.COMPILED,
        True,
        "backward",
        (PLAIN, STRIDED),
        "Inductor's code for {} gives its gradients on {}.",
    ),
    "eager_forward": Mode(
        support.EAGER, False, "forward", _ALL, "{} gives the results of torch's CPU operator on {}."
    ),
    "eager_backward": Mode(
        support.EAGER,
        False,
        "backward",
        (PLAIN, STRIDED),
        "{} gives the gradients of torch's CPU operator on {}.",
    ),
    "eager_out": Mode(
        support.EAGER, False, "out", (PLAIN, STRIDED), "{} writes its result into a given output on {}."
    ),
}
"""By name."""


@dataclass(frozen=True)
class Body:
    """A check's body: an operator in a mode on a type."""

    operator: str
    mode: str
    dtype: str

    def __call__(self, context: Context) -> None:
        import torch

        op, mode = support.operators()[self.operator], MODES[self.mode]
        device, dtype = support.device_of(context), getattr(torch, self.dtype)
        layouts = mode.layouts if self.dtype not in DTYPES else mode.layouts[1:3]
        trial = _Trial(context, op, self.operator, mode, device)
        with support.inductor(context.session.scratch), _without_seeds():
            for sample in choose(op, dtype, layouts, grad=mode.kind == "backward", seed=context.seed):
                trial.run(sample)
            trial.conclude()


class _Trial:
    """The samples of a check, one after another."""

    def __init__(self, context: Context, op: Any, name: str, mode: Mode, device: str) -> None:
        self._context, self._op, self._mode, self._device = context, op, mode, device
        self._form_only = op.name in tables.UNSPECIFIED or (device != "cpu" and op.name in tables.NOT_UNIQUE)
        self._name = name
        self._fallbacks = Fallbacks(context, device)
        self._refused = ""
        self._sample: Sample | None = None
        self._graphs, self._kernels = _graphs(), _kernels()
        self._done = 0

    def run(self, sample: Sample) -> None:
        """Call the operator on a sample and compare."""
        seed = self._context.seed
        eager = self._call(self._function, sample)
        try:
            expected = calling.reference(eager, sample, seed, form_only=self._form_only)
            if self._mode.kind == "out":
                self._verify_output(sample, expected)
        except Refused as refused:
            self._refused = str(refused)
            return
        expected = replace(
            expected, same=self._statistics(expected.same), indices=self._ties(sample, expected)
        )
        import torch

        self._done, self._sample = self._done + 1, sample
        torch.manual_seed(seed)
        try:
            with self._fallbacks.counted():
                found = self._on_device(eager, sample, expected)
        except Exception as error:
            if not self._is_upstream(sample, expected, error):
                setattr(error, BY_BACKEND, True)
                raise
            return
        found_wrong = [(w, c) for w, c in calling.comparisons(found, expected) if c.differ]
        if found_wrong and self._is_upstream(sample, expected, None):
            return
        for what, comparison in calling.comparisons(found, expected):
            self._context.compare(f"{sample.name}: {what}", comparison)

    def _on_device(self, eager: Call, sample: Sample, expected: Reference) -> Any:
        if self._mode.kind == "out":
            return self._into_output(sample, expected, self._device)
        values = sample.on(self._device)
        if not self._mode.compiles:
            return eager(values)
        return self._call(calling.compiled(self._function, self._device), sample)(values)

    def conclude(self) -> None:
        """Record what all samples have in common."""
        self._fallbacks.record()
        if not self._done:
            self._upstream(
                "no sample", self._refused or "OpInfo has none", "torch's CPU operator takes no sample"
            )
        elif self._mode.compiles and not (graphs := _graphs() - self._graphs):
            self._no_graph()
        elif self._mode.compiles:
            kernels = _kernels() - self._kernels
            self._context.expect(
                True, f"{graphs} graphs were compiled, with {kernels} kernels of Inductor's own"
            )

    def _no_graph(self) -> None:
        """Whether Dynamo compiles no graph for Inductor's C++ code either."""
        assert self._sample is not None
        before = _graphs()
        self._call(calling.compiled(self._function, "cpu", stock=True), self._sample)(self._sample.on("cpu"))
        graphs = _graphs() - before
        self._context.expect(
            not graphs,
            "Dynamo compiles a graph as for the CPU",
            f"it compiles none on {self._device}, there {graphs}",
        )
        self._upstream(
            "no graph", "Dynamo compiles no graph", "nor does it for Inductor's C++ code for the CPU"
        )

    def _function(self, first: Any, args: Any, kwargs: Any) -> Any:
        return self._op.op(first, *args, **kwargs)

    def _call(self, function: Any, sample: Sample) -> Call:
        if self._mode.kind == "backward":
            return calling.backward(function, sample.process, self._context.seed)
        return calling.forward(function)

    def _ties(self, sample: Sample, expected: Reference) -> int:
        """The number of the result that holds indices, if the operator may choose among equal elements."""
        from torch.utils._pytree import tree_leaves

        first, _, kwargs = sample.values
        if self._op.name not in tables.TIES or self._mode.kind == "backward" or kwargs.get("stable"):
            return -1
        if first.unique().numel() == first.numel():
            return -1
        return len(tree_leaves(expected.same[0])) - 1

    def _statistics(self, same: Any) -> Any:
        """The results in the types that they have on the device: see `tables.STATISTICS`."""
        import torch

        if self._op.name not in tables.STATISTICS or self._device == "cpu" or self._mode.kind != "forward":
            return same
        (first, *others), inputs = same
        half = (torch.float16, torch.bfloat16)
        return (first, *(x.float() if x.dtype in half else x for x in others)), inputs

    def _into_output(self, sample: Sample, expected: Reference, device: str) -> Any:
        """Results in given tensors: of the right size, or (for strided samples) empty ones, which must be resized."""
        import torch
        from torch.utils._pytree import tree_map

        def given(tensor: Any) -> Any:
            shape = (0,) if STRIDED in sample.name else tensor.shape
            return torch.empty(shape, dtype=tensor.dtype, device=device)

        wanted, _ = expected.same
        output = tree_map(given, wanted if isinstance(wanted, torch.Tensor) else tuple(wanted))
        values = sample.on(device)
        first, args, kwargs = values
        with torch.no_grad():
            self._op.op(first, *args, **kwargs, out=output)
        return output, values

    def _verify_output(self, sample: Sample, expected: Reference) -> None:
        """Raise `Refused` if torch's CPU operator does not write its results into given outputs."""
        try:
            found = self._into_output(sample, expected, "cpu")
        except Exception as error:
            raise Refused(f"with out=, {type(error).__name__}: {error}") from error
        wrong = [comparison for _, comparison in calling.comparisons(found, expected) if comparison.differ]
        if wrong:
            raise Refused(f"with out=, torch's CPU operator gives other results: {wrong[0].message}")

    def _is_upstream(self, sample: Sample, expected: Reference, error: Exception | None) -> bool:
        """Whether Inductor's C++ code for the CPU fails in the same way; recorded if so."""
        if not self._mode.compiles:
            return False
        found = "the result is wrong" if error is None else calling.shown(error)
        if error is not None and self._device == "cpu":
            for pattern, cause in tables.INDUCTOR_ON_CPU.items():
                if re.search(pattern, f"{calling.innermost(error)}"):
                    self._upstream(sample.name, found, cause)
                    return True
        stock = self._call(calling.compiled(self._function, "cpu", stock=True), sample)
        same = calling.stock_failure(stock, sample, expected, error)
        if same:
            self._upstream(sample.name, found, f"Inductor's C++ code for the CPU: {same}")
        return bool(same)

    def _upstream(self, what: str, found: str, elsewhere: str) -> None:
        self._context.evidence.append(
            {"kind": "upstream", "what": what, "message": f"{found[:1000]}; {elsewhere[:1000]}"}
        )


@contextmanager
def _without_seeds() -> Iterator[None]:
    """Let OpInfo call random operators without setting the seed, which Dynamo does not trace."""
    module: Any = importlib.import_module("torch.testing._internal.common_methods_invocations")
    before = module.wrapper_set_seed
    module.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    try:
        yield
    finally:
        module.wrapper_set_seed = before


def _graphs() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def _kernels() -> int:
    """How many kernels Inductor has generated. It leaves some operators to torch's own."""
    from torch._inductor import metrics

    return int(metrics.generated_kernel_count)


def dtypes_of(op: Any, mode: Mode) -> Iterator[str]:
    """The types on which an operator is checked in a mode."""
    import torch

    supported = op.supported_backward_dtypes("cpu") if mode.kind == "backward" else op.supported_dtypes("cpu")
    names = [name for name in ("float32", *DTYPES, "complex64") if getattr(torch, name) in supported]
    if "float32" in names:
        yield "float32"
    else:
        yield from [name for name in _OTHERS if name in names][:1]
    if mode.kind == "forward":
        yield from (name for name in names if name in DTYPES and "float32" in names)


class _Operators:
    """The checks; made when they are asked for, since that imports torch."""

    def __iter__(self) -> Iterator[Check]:
        for name, op in support.operators().items():
            if name in tables.SKIPPED:
                continue
            for mode_name, mode in MODES.items():
                if (mode.kind == "backward" and not op.supports_autograd) or (
                    mode.kind == "out" and not op.supports_out
                ):
                    continue
                for dtype in dtypes_of(op, mode):
                    yield Check(
                        f"torch/opinfo/{name}-{mode_name}-{dtype}",
                        mode.requirement.format(f"`{name}`", dtype),
                        Body(name, mode_name, dtype),
                        seconds=SECONDS,
                        needs=frozenset({f"torch:{dtype}"}) if dtype in DTYPES else frozenset(),
                        torch=mode.need,
                    )


CHECKS = _Operators()

"""Operators that Inductor compiles for the device one at a time, when programs call them.

An operator is compiled for the types and the shapes of its arguments and for its numbers. When other shapes come, it is
compiled once more with sizes that may vary; when other numbers come, with numbers that may vary. Inductor keeps what it
compiled on disk, so later processes load it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from triton_porting_kit.pytorch.operators import miscompiled
from triton_porting_kit.pytorch.operators.arguments import (
    Float,
    NotCompiled,
    Slot,
    check,
    only_makes_results,
    passed_results,
    skeleton,
    with_varying_numbers,
    without_floats,
    written,
)
from triton_porting_kit.pytorch.operators.layouts import is_dense

_log = logging.getLogger(__name__)
_lock = threading.RLock()
_running = threading.local()
_THREAD = "tpk-eager"
_compiling = ThreadPoolExecutor(1, thread_name_prefix=_THREAD)
"""Compiles. Its thread has none of the dispatcher's state of the threads that call operators."""

_HOST_TAGS = frozenset(
    {torch.Tag.nondeterministic_seeded, torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
)
"""Operators whose results depend on more than the types and the shapes of the arguments."""

_CONFIG = {"compile_threads": 1}
"""For Inductor: one kernel is compiled sooner here than by another process."""

_NUMBER_OF = torch.ops.aten._local_scalar_dense.default

_MOST_SHAPES = 16
"""Variants of one operator with the same types and ranks. Calls that need more run on the host."""

_MOST_NUMBERS = 16
"""Numbers that an operator is compiled for one by one if it cannot take them as arguments."""

_MOST_FAMILIES = 4096
"""When there are more, the oldest one is dropped. Inductor loads its code from disk if it is called again."""

_MOST_LAYOUTS = 8
"""Variants of one operator after which arguments with gaps or overlaps are copied: code for them is for one layout."""


@dataclass(frozen=True)
class _Variant:
    """One compilation of an operator."""

    run: Any
    guard: Any
    """Takes `_geometry` of the tensors, and returns whether the compiled code is right for them."""


@dataclass
class _Family:
    """The compilations for arguments that differ only in sizes and strides."""

    exact: dict[tuple[Any, ...], _Variant] = field(default_factory=dict)
    general: list[_Variant] = field(default_factory=list)
    resized: dict[tuple[Any, ...], list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)
    """The shapes that the operator gives to results that it is passed, where they have others."""
    reason: str = ""
    """Why calls run on the host, if they do."""


@dataclass
class _Numbers:
    """The compilations for arguments that differ in numbers, too."""

    family: _Family = field(default_factory=_Family)
    """Its code takes the numbers as arguments."""
    constants: int = 0
    """The families with numbers that are part of the code."""


_families: dict[Any, _Family] = {}
_numbers: dict[Any, _Numbers] = {}
_Value = TypeVar("_Value")


def call(operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on the device. Raises `NotCompiled` if it must run on the host."""
    if getattr(_running, "operators", None) and operator in _running.operators:
        raise NotCompiled("Inductor has no code for it")
    if _HOST_TAGS.intersection(operator.tags):
        raise NotCompiled("its results depend on values or on random numbers")
    tensors: list[torch.Tensor] = []
    static = skeleton(operator, args, kwargs, tensors)
    check(operator, tensors)
    miscompiled.move_numbers(tensors)
    key = _key(operator, static, tensors)
    family = _families.get(key)
    results = _with_varying_numbers(operator, static, tensors) if family is None else None
    if results is None:
        results = _results(family or _kept(_families, key, _Family), operator, static, tensors)
    return _outputs(operator, args, kwargs, results)


def _key(operator: torch._ops.OpOverload, static: Any, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    return (operator, static, tuple((t.dtype, t.dim(), t.device.type) for t in tensors))


def _kept(table: dict[Any, _Value], key: Any, make: Callable[[], _Value]) -> _Value:
    """The value of a key, made if there is none. The table stays below its limit."""
    with _lock:
        if key not in table:
            if len(table) >= _MOST_FAMILIES:
                del table[next(iter(table))]
            table[key] = make()
        return table[key]


def _with_varying_numbers(
    operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor]
) -> list[Any] | None:
    """The results of code that takes numbers as arguments. None if code for these numbers is to be compiled.

    The first numbers of an operator become part of its code: they often are the only ones.
    """
    varying = with_varying_numbers(operator, static, tensors)
    general = (without_floats(static), tensors) if varying is None else varying
    if general[0] == static:
        return None
    numbers = _kept(_numbers, _key(operator, *general), _Numbers)
    if varying is not None and numbers.constants and not numbers.family.reason:
        try:
            return _results(numbers.family, operator, *varying)
        except NotCompiled as reason:
            if not numbers.family.exact:
                numbers.family.reason = str(reason)
    if numbers.constants >= _MOST_NUMBERS:
        raise NotCompiled(f"it was compiled for {_MOST_NUMBERS} other numbers")
    numbers.constants += 1
    return None


def _results(
    family: _Family, operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor]
) -> list[Any]:
    """Run the code for the arguments, which is compiled if need be."""
    if family.reason:
        raise NotCompiled(family.reason)
    _resize(family, operator, static, tensors)
    passed = tensors
    if len(family.exact) + len(family.general) >= _MOST_LAYOUTS:
        passed = [t if is_dense(t) else t.contiguous() for t in tensors]
    variant = _find(family, operator, static, passed)
    try:
        results = _run(operator, variant, passed)
    except AssertionError as error:
        # Inductor asserts that what runs on the CPU for it has the layout that torch's meta kernel says. Some of these
        # describe the kernels of GPUs: `_embedding_bag`, and up to torch 2.11 `_fft_r2c`.
        if not only_makes_results(operator):
            raise
        family.reason = f"its results are not laid out as Inductor expects: {str(error).splitlines()[0]}"
        raise NotCompiled(family.reason) from None
    for place in written(operator, static) if passed is not tensors else ():
        if passed[place] is not tensors[place]:
            tensors[place].copy_(passed[place])
    return results


# --- compilation -----------------------------------------------------------------------------------------


def _exact(tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    return tuple((tuple(t.shape), t.stride(), _is_shifted(t)) for t in tensors)


def _is_shifted(tensor: torch.Tensor) -> bool:
    """Whether the first element is not where Inductor expects it. Compiled code depends on no more of the offset."""
    return tensor.storage_offset() % 64 != 0


def _resize(
    family: _Family, operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor]
) -> None:
    """Give results that the caller passes the shapes that the operator gives them."""
    outputs = passed_results(operator, static)
    if not outputs:
        return
    if family.exact and all(tensors[i].numel() for i in outputs):
        return  # one that is not empty and has another shape is found when it is compiled
    exact = _exact(tensors)
    if exact not in family.resized:
        family.resized[exact] = _in_compiler(_result_shapes, operator, static, tensors, outputs)
    for index, shape in family.resized[exact]:
        tensors[index].resize_(shape)


def _result_shapes(
    operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor], outputs: list[int]
) -> list[tuple[int, tuple[int, ...]]]:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    detached = [t.detach() for t in tensors]
    with torch.no_grad(), FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True) as mode:
        fakes = [mode.from_tensor(t) for t in detached]
        torch.fx.Interpreter(_graph(operator, static, len(tensors))).run(*fakes)
    return [(i, tuple(fakes[i].shape)) for i in outputs if fakes[i].shape != tensors[i].shape]


def _in_compiler(function: Any, *arguments: Any) -> Any:
    """Call a function in the thread that compiles. Raises `NotCompiled` if the function fails."""
    if threading.current_thread().name.startswith(_THREAD):
        raise NotCompiled("Inductor needs it while it compiles")
    try:
        return _compiling.submit(function, *arguments).result()
    except Exception as error:
        _log.debug("%s is not compiled", arguments[0], exc_info=True)
        first = (str(error) or repr(error)).splitlines()[0]
        raise NotCompiled(f"Inductor does not compile it: {first}") from None


def _find(
    family: _Family, operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor]
) -> _Variant:
    exact = _exact(tensors)
    known = family.exact.get(exact)
    if known is not None:
        return known
    geometry = _geometry(tensors)
    for candidate in family.general:
        if candidate.guard(geometry):
            return candidate
    if len(family.exact) + len(family.general) >= _MOST_SHAPES:
        raise NotCompiled(f"it was compiled {_MOST_SHAPES} times for other shapes")
    dynamic = bool(family.exact)
    outputs = passed_results(operator, static)
    shapes = _in_compiler(_result_shapes, operator, static, tensors, outputs) if dynamic and outputs else []
    if shapes:
        for index, shape in shapes:
            tensors[index].resize_(shape)
        return _find(family, operator, static, tensors)
    try:
        variant: _Variant = _in_compiler(_compile, operator, static, tensors, dynamic)
    except NotCompiled as error:
        family.reason = str(error)
        raise
    if dynamic:
        family.general.append(variant)
    else:
        family.exact[exact] = variant
    return variant


def _geometry(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [n for t in tensors for n in (*t.shape, *t.stride(), int(_is_shifted(t)))]


def _compile(
    operator: torch._ops.OpOverload, static: Any, tensors: list[torch.Tensor], dynamic: bool
) -> _Variant:
    from torch._inductor.compile_fx import compile_fx
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shapes = ShapeEnv()
    mode = FakeTensorMode(shape_env=shapes)
    with torch.no_grad():
        fakes = [_fake(mode, tensor, f"a{i}", dynamic) for i, tensor in enumerate(tensors)]
        run = compile_fx(_graph(operator, static, len(tensors)), fakes, config_patches=_CONFIG)
        numbers = [n for f in fakes for n in (*f.shape, *f.stride(), int(_is_shifted(f)))]
        places = [i for i, n in enumerate(numbers) if isinstance(n, torch.SymInt)]
        guards = shapes.produce_guards_expression([numbers[i] for i in places]) if places else None
    fixed = [(i, n) for i, n in enumerate(numbers) if not isinstance(n, torch.SymInt)]

    def guard(geometry: list[int]) -> bool:
        if any(geometry[i] != n for i, n in fixed):
            return False
        return guards is None or bool(
            shapes.evaluate_guards_expression(guards, [geometry[i] for i in places])
        )

    return _Variant(run, guard)


def _fake(mode: Any, tensor: torch.Tensor, name: str, dynamic: bool) -> Any:
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    kind = DimDynamic.DUCK if dynamic and is_dense(tensor) else DimDynamic.STATIC
    context: Any = StatelessSymbolicContext(dynamic_sizes=[kind] * tensor.dim())
    example = _without_offset(tensor.detach())
    # A number has no source: torch would make a variable of it, and compile for its value if it is of float64.
    source = None if tensor.device.type == "cpu" else ConstantSource(name)
    return mode.from_tensor(example, symbolic_context=context, source=source)


def _without_offset(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same layout whose offset is 0, or 1 if it is shifted: code for it holds for all offsets."""
    if not tensor.storage_offset():
        return tensor
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n)
    storage = torch.empty(span + 1, dtype=tensor.dtype, device=tensor.device)
    return storage.as_strided(tensor.shape, tensor.stride(), int(_is_shifted(tensor)))


def _graph(operator: torch._ops.OpOverload, static: Any, count: int) -> torch.fx.GraphModule:
    """A graph that calls the operator and returns what it makes; what it returns of its arguments is left out."""
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"a{i}") for i in range(count)]

    def fill(value: Any) -> Any:
        if isinstance(value, Slot):
            tensor = inputs[value.place]
            return graph.call_function(_NUMBER_OF, (tensor,)) if value.is_number else tensor
        if isinstance(value, Float):
            return value.value
        return [fill(each) for each in value] if isinstance(value, tuple) else value

    positional, named = static
    result = graph.call_function(
        operator, tuple(fill(v) for v in positional), {name: fill(v) for name, v in named}
    )
    returns = operator._schema.returns
    fresh = [i for i, each in enumerate(returns) if each.alias_info is None]
    if len(returns) == 1:
        graph.output((result,) if fresh else ())
    else:
        graph.output(tuple(graph.call_function(_item, (result, i)) for i in fresh))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _item(values: Any, index: int) -> Any:
    return values[index]


# --- results ---------------------------------------------------------------------------------------------


def _run(operator: torch._ops.OpOverload, variant: _Variant, tensors: list[torch.Tensor]) -> list[Any]:
    """Run the compiled code. Operators that it calls itself run on the host if they are this one."""
    outer = getattr(_running, "operators", ())
    _running.operators = (*outer, operator)
    try:
        with torch.no_grad():
            return list(variant.run(*tensors))
    finally:
        _running.operators = outer


def _outputs(
    operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], results: list[Any]
) -> Any:
    """What the operator returns: its results, and the arguments that its schema says it returns."""
    schema = operator._schema
    values = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
    written = {
        frozenset(a.alias_info.before_set): values.get(a.name)
        for a in schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
    }
    fresh = iter(results)
    returned = [
        next(fresh) if each.alias_info is None else written[frozenset(each.alias_info.before_set)]
        for each in schema.returns
    ]
    return returned[0] if len(returned) == 1 else (tuple(returned) if returned else None)

"""Loops whose bodies a function writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import TypeVar

import numpy as np

from triton_porting_kit.conformance.stress.builder import Builder
from triton_porting_kit.conformance.stress.numbers import as_number
from triton_porting_kit.conformance.stress.program import Carried, Loop, Type

Body = TypeVar("Body", bound=Builder)


def counted(style: str, iterations: int) -> Loop:
    """A loop of one of `STYLES` that needs no scalar, without a counter, carried values and a body."""
    return Loop(-1, style, iterations, None, (), ())


def repeated(
    builder: Body,
    loop: Loop,
    initial: Mapping[int, int],
    body: Callable[[Body, int, Mapping[int, int]], Mapping[int, int | None]],
) -> dict[int, int] | None:
    """Add a loop like `loop` that carries the `initial` values. Returns the values after it; None if it is
    ill-conditioned.

    Any numbers can be the keys. `body` adds the statements of an iteration from the counter and the carried values, and
    returns the values for the next one.
    """
    inner, counter = builder.nested(), builder.shared.value()
    start = loop.start
    kind = Type("i32") if start is None else builder.types[start]
    zero = as_number("i32", np.zeros((), np.int32))
    inner.define(counter, kind, (lambda environment: zero) if start is None else itemgetter(start))
    params = {}
    for name, value in initial.items():
        params[name] = builder.shared.value()
        inner.define(params[name], builder.types[value], itemgetter(value))
    after = body(inner, counter, params)
    changes = tuple(
        Carried(params[name], initial[name], next) for name, next in after.items() if next is not None
    )
    if len(changes) < len(initial):
        return None
    added = builder.add(replace(loop, index=counter, carried=changes, body=tuple(inner.body)))
    return params if added else None

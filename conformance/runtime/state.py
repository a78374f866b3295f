"""Launches whose result must not depend on earlier, concurrent or surrounding work: each problem in each circumstance.

A backend may keep state between launches or between programs of a launch: packed operands, constants, scratch memory,
addresses. Each kind of such state becomes stale in some circumstance here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Body, Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.spinning import spin, turns_for
from triton_porting_kit.conformance.runtime.threads import in_threads
from triton_porting_kit.conformance.types import KINDS, Array

CHECKS = Checks("runtime/state")

_COUNT = 96
"""The number of rows and columns of the arrays of all problems. It is not a multiple of every tile size."""


@dataclass(frozen=True)
class Problem:
    """A kernel with two inputs and an output, all square, and its oracle. Results are exact."""

    name: str
    kind: str
    source: str
    """A kernel with the parameters X, Y, O, n, AXIS (of the grid) and those in `tiles`."""
    oracle: Callable[[Array, Array], Array]
    """Computes the expected output from integer inputs."""
    programs: int
    tiles: dict[str, int] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    updates: bool = False
    """Whether the kernel reads the output, which then initially holds X."""


_PRODUCT = """
def product_{k}(X, Y, O, n, AXIS: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr):
    pid = tl.program_id(AXIS)
    across = tl.cdiv(n, TILE)
    rows = pid // across * TILE + tl.arange(0, TILE)
    columns = pid % across * TILE + tl.arange(0, TILE)
    deep = tl.arange(0, DEPTH)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, n, DEPTH):
        at, there = k + deep, k + deep < n
        a = tl.load(X + rows[:, None] * n + at[None, :], mask=(rows < n)[:, None] & there[None, :], other=0)
        b = tl.load(Y + at[:, None] * n + columns[None, :], mask=there[:, None] & (columns < n)[None, :], other=0)
        acc = tl.dot(a, b, acc)
    tl.store(O + rows[:, None] * n + columns[None, :], acc, mask=(rows < n)[:, None] & (columns < n)[None, :])
"""
_ROWS = """
def rows_{k}(X, Y, O, n, AXIS: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(AXIS)
    at = tl.arange(0, TILE)
    x = tl.load(X + row * n + at, mask=at < n, other=0)
    y = tl.load(Y + row * n + at, mask=at < n, other=0)
    tl.store(O + row * n + at, x * tl.sum(y, 0) - tl.cumsum(x, 0) + tl.max(y, 0), mask=at < n)
"""
_GATHER = """
def gather_{k}(X, Y, O, n, AXIS: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(AXIS)
    at = tl.arange(0, TILE)
    index = tl.load(Y + row * n + at, mask=at < n, other=0) % n
    index = tl.where(index < 0, index + n, index)
    found = tl.load(X + row * n + index, mask=at < n, other=0)
    again = tl.load(X + index * n + row, mask=at < n, other=0)
    tl.store(O + row * n + at, found * 3 + again, mask=at < n)
"""
_UPDATE = """
def update_{k}(X, Y, O, n, AXIS: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(AXIS)
    at = tl.arange(0, TILE)
    before = tl.load(O + row * n + at, mask=at < n, other=0)
    turn = tl.load(Y + row * n) % 3
    turn = tl.where(turn < 0, turn + 3, turn)
    while turn < 4:
        now = tl.load(O + row * n + at, mask=at < n, other=0)
        tl.store(O + row * n + at, now * 2 + before + turn, mask=at < n)
        turn += 1
"""


def _rows(x: Array, y: Array) -> Array:
    return np.asarray(x * y.sum(1, keepdims=True) - np.cumsum(x, 1) + y.max(1, keepdims=True))


def _gathered(x: Array, y: Array) -> Array:
    index = y % _COUNT
    return np.asarray(np.take_along_axis(x, index, 1) * 3 + x[index, np.arange(_COUNT)[:, None]])


def _updated(x: Array, y: Array) -> Array:
    found = x.copy()
    for row in range(_COUNT):
        for turn in range(int(y[row, 0]) % 3, 4):
            found[row] = found[row] * 2 + x[row] + turn
    return found


def _multiplied(x: Array, y: Array) -> Array:
    return x @ y


DOT = ("feature:dot", "type:fp32")
PROBLEMS = (
    Problem("product", "fp32", _PRODUCT, _multiplied, 9, {"TILE": 32, "DEPTH": 32}, DOT),
    Problem("product-bf16", "bf16", _PRODUCT, _multiplied, 9, {"TILE": 32, "DEPTH": 16}, (*DOT, "type:bf16")),
    Problem("rows", "i32", _ROWS, _rows, _COUNT, {"TILE": 128}, ("type:i32",)),
    Problem("gather", "i32", _GATHER, _gathered, _COUNT, {"TILE": 128}, ("type:i32",)),
    Problem("update", "i32", _UPDATE, _updated, _COUNT, {"TILE": 128}, ("type:i32",), updates=True),
)


class Trial:
    """A problem with its own operands."""

    def __init__(self, context: Context, problem: Problem, number: int = 0) -> None:
        self.context, self.problem = context, problem
        self._random = np.random.default_rng([context.seed, number])
        self.x, self.y = self._operand(), self._operand()
        self.inputs = [context.array(v.astype(self._host), problem.kind) for v in (self.x, self.y)]
        self.out = context.empty((_COUNT, _COUNT), "fp32" if problem.kind == "bf16" else problem.kind)
        self.refresh()

    @property
    def _host(self) -> Any:
        return KINDS[self.problem.kind].host

    def _operand(self) -> Array:
        return self._random.integers(-4, 5, (_COUNT, _COUNT))

    def change(self) -> None:
        """Change the contents of the inputs in place."""
        self.x, self.y = self._operand(), self._operand()
        for array, values in zip(self.inputs, (self.x, self.y), strict=True):
            array.write(values.astype(self._host))

    def refresh(self) -> None:
        """Reset the output to its contents before a launch."""
        begin = self.x if self.problem.updates else np.full((_COUNT, _COUNT), 99)
        self.out.write(begin.astype(self.out.kind.host))

    def launch(self, kernel: Any = None, axis: int = 0, inputs: list[GuardedArray] | None = None) -> None:
        x, y = inputs or self.inputs
        grid = tuple(self.problem.programs if k == axis else 1 for k in range(3))
        (kernel or self.kernel())[grid](x, y, self.out, _COUNT, AXIS=axis, **self.problem.tiles)

    def kernel(self, number: int = 0) -> Any:
        return make_kernel(self.problem.source.replace("_{k}", f"_{number}"))

    def compare(self, what: str, x: Array | None = None, y: Array | None = None) -> None:
        """Compare the output with the oracle's, for the trial's inputs or for given ones."""
        exact = self.problem.oracle(self.x if x is None else x, self.y if y is None else y)
        found = self.context.read(self.out)
        self.context.compare(what, identical(found, exact.astype(found.dtype)))

    def run(self, what: str, **how: Any) -> None:
        """Reset the output, launch, and compare."""
        self.refresh()
        self.launch(**how)
        self.compare(what)


# --- circumstances -----------------------------------------------------------------------------------------


def _again(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    for turn in range(4):
        trial.run(f"launch {turn + 1}")


def _changed(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    trial.run("before")
    for turn in range(3):
        trial.change()
        trial.run(f"after change {turn + 1}")


_NEGATE = """
def negate(X, n, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(X + at, -tl.load(X + at, mask=at < n), mask=at < n)
"""


def _changed_by_a_kernel(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    trial.run("before")
    size = _COUNT * _COUNT
    for turn in range(3):
        changed = turn % 2
        make_kernel(_NEGATE)[(-(-size // 256),)](trial.inputs[changed], size, TILE=256)
        if changed:
            trial.y = -trial.y
        else:
            trial.x = -trial.x
        trial.run(f"after kernel {turn + 1}")


def _beside_others(context: Context, problem: Problem) -> None:
    trials = [Trial(context, problem, number) for number in range(3)]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 0, 2)):
        for k in order:
            trials[k].refresh()
        for k in order:
            trials[k].refresh()
            trials[k].launch()
        for k in sorted(set(order)):
            trials[k].compare(f"operands {k + 1} in the order {[k + 1 for k in order]}")


def _after_other_kernels(context: Context, problem: Problem) -> None:
    own = Trial(context, problem)
    own.run("first")
    others = [
        Trial(context, p, 7) for p in PROBLEMS if p is not problem and set(p.needs) <= set(problem.needs)
    ]
    for other in [*others, *reversed(others)]:
        other.run(f"{other.problem.name} between")
        own.run(f"after {other.problem.name}")


def _other_addresses(context: Context, problem: Problem) -> None:
    first = Trial(context, problem)
    first.run("before")
    kept = first.inputs
    first.inputs = [context.array(v.astype(first._host), problem.kind) for v in (first.x, first.y)]
    for array in kept:
        array.write(np.full((_COUNT, _COUNT), 3).astype(first._host))
    first.run("the same content elsewhere")
    first.inputs.reverse()
    first.x, first.y = first.y, first.x
    first.run("the inputs exchanged")


def _one_array_twice(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    trial.run("two arrays")
    trial.y = trial.x
    trial.run("one array as both inputs", inputs=[trial.inputs[0]] * 2)


def _other_axes(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    for axis in (0, 1, 2, 1, 0):
        trial.run(f"programs along axis {axis}", axis=axis)


def _poisoned(context: Context, problem: Problem) -> None:
    """Launches reuse memory that previously held infinities and values at the ends of the range."""
    trial, poison = Trial(context, problem), Trial(context, problem, 5)
    host, kind = trial._host, KINDS[problem.kind]
    trial.run("before")
    for values in (np.inf, -np.inf, np.nan) if kind.is_float else (kind.highest, kind.lowest, -1):
        for array in (poison.inputs[0], *([] if problem.updates else [poison.inputs[1]])):
            array.write(np.full((_COUNT, _COUNT), values, host))
        poison.refresh()
        poison.launch()
        trial.run(f"after a launch on {values}")


def _copies(context: Context, problem: Problem) -> None:
    """Several kernels with the same source, which are compiled and cached separately."""
    trial = Trial(context, problem)
    kernels = [trial.kernel(number) for number in range(3)]
    for kernel in (*kernels, *reversed(kernels)):
        trial.change()
        trial.run("one of three kernels of the same source", kernel=kernel)


def _threads(context: Context, problem: Problem) -> None:
    trials = [Trial(context, problem, number) for number in range(4)]
    trials[0].run("before")
    for trial in trials:
        trial.refresh()
    context.memory.synchronize()
    launches = 1 if problem.updates else 10

    def work(k: int) -> None:
        for _ in range(launches):
            trials[k].launch()

    in_threads(context, "launches", work, len(trials))
    for k, trial in enumerate(trials):
        trial.compare(f"thread {k}")


def _busy(context: Context, problem: Problem) -> None:
    trial = Trial(context, problem)
    out = context.array(np.zeros(2, np.int64), "i64")
    trial.run("before")
    interface = context.driver.get_device_interface()
    for turn in range(3):
        stream = interface.Stream()
        spin(out, turns_for(context, 5.0), 2 * turn + 3)
        trial.change()
        trial.refresh()
        context.memory.synchronize()
        spin(out, turns_for(context, 5.0), 2 * turn + 5)
        with interface.stream(stream):
            trial.launch()
        stream.synchronize()
        trial.compare(f"on stream {turn + 1}, beside a busy one")


CIRCUMSTANCES: dict[str, tuple[Callable[[Context, Problem], None], str, tuple[str, ...]]] = {
    "again": (_again, "is the same each time", ()),
    "changed": (_changed, "follows its inputs when the host changes them in place", ()),
    "changed-by-a-kernel": (
        _changed_by_a_kernel,
        "follows its inputs when a kernel changes them in place",
        (),
    ),
    "beside-others": (_beside_others, "is the same in whatever order launches on other arrays are made", ()),
    "after-other-kernels": (_after_other_kernels, "is the same after other kernels", ()),
    "other-addresses": (
        _other_addresses,
        "is the same when the arrays have other addresses or are exchanged",
        (),
    ),
    "one-array-twice": (_one_array_twice, "is right when both inputs are one array", ()),
    "other-axes": (_other_axes, "is the same along each axis of the grid", ()),
    "poisoned": (
        _poisoned,
        "is the same after launches that left infinities and ends of the range in memory",
        (),
    ),
    "copies": (_copies, "is the same from several kernels of the same source", ()),
    "threads": (_threads, "is right in each of several threads that launch at the same time", ()),
    "busy-stream": (_busy, "is right on one stream while another is busy", ("feature:streams", "type:i64")),
}
"""The body of each circumstance, the end of its requirement, and the capabilities that it needs."""


def _body(circumstance: Callable[[Context, Problem], None], problem: Problem) -> Body:
    return lambda context: circumstance(context, problem)


for _problem in PROBLEMS:
    for _name, (_circumstance, _sentence, _needs) in CIRCUMSTANCES.items():
        CHECKS.add(
            f"{_problem.name}-{_name}",
            f"The result of the kernel `{_problem.name}` {_sentence}.",
            _body(_circumstance, _problem),
            needs=(*_problem.needs, *_needs),
            elements=1024,
        )

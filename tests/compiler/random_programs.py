"""Random kernels on tiles, each line written together with what it does to NumPy arrays.

All numbers are whole: fp32 values stay below 2**20, where single precision is exact in any order of summation;
i32 values wrap around. No operation is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from running import Array

SHAPES = ((8,), (32,), (4, 8), (8, 4), (16, 16), (1, 8), (4, 1), (2, 4, 8), (4, 2, 2))
LIMIT = 2.0**20


@dataclass
class Variable:
    """A tensor of the kernel and its value."""

    name: str
    value: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def is_float(self) -> bool:
        return bool(self.value.dtype == np.float32)


@dataclass
class Program:
    """Source lines so far, and the tensors that later lines may use."""

    draw: Callable[[Any], Any]
    inputs: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    indent: str = "    "

    def choose(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def add(self, expression: str, value: Array) -> Variable:
        """A new variable; floats that grew are brought back."""
        name = f"v{len(self.variables)}"
        self.lines.append(f"{self.indent}{name} = {expression}")
        if value.dtype == np.float32 and np.abs(value).max(initial=0) >= LIMIT / 64:
            self.lines.append(f"{self.indent}{name} = tl.minimum(tl.maximum({name}, -9.0), 9.0)")
            value = np.clip(value, np.float32(-9), np.float32(9))
        variable = Variable(name, value)
        self.variables.append(variable)
        return variable

    def load(self) -> None:
        shape = self.choose(SHAPES)
        kind: Any = self.choose((np.int32, np.float32))
        seed = self.number(0, 99)
        value = np.random.default_rng(seed).integers(-9, 10, shape).astype(kind)
        name = f"X{len(self.inputs)}"
        self.inputs.append(Variable(name, value))
        self.add(f"tl.load({name} + {offsets(shape)})", value)

    # --- operations ------------------------------------------------------------------------------

    def any(self, condition: Callable[[Variable], bool] = lambda v: True) -> Variable | None:
        fitting = [v for v in self.variables if condition(v)]
        return self.choose(fitting) if fitting else None

    def partner(self, a: Variable) -> Variable | None:
        """A variable of the same type whose shape broadcasts with that of `a`."""

        def fits(b: Variable) -> bool:
            return (
                b.is_float == a.is_float
                and len(a.shape) == len(b.shape)
                and all(m == n or 1 in (m, n) for m, n in zip(a.shape, b.shape, strict=True))
                and bool(np.prod(np.broadcast_shapes(a.shape, b.shape)) <= 1024)
            )

        return self.any(fits)

    def binary(self, a: Variable) -> None:
        b = self.partner(a)
        assert b is not None
        symbol, function = self.choose(
            [("+", np.add), ("-", np.subtract), ("*", np.multiply)]
            + ([] if a.is_float else [("&", np.bitwise_and), ("|", np.bitwise_or), ("^", np.bitwise_xor)])
        )
        self.add(f"{a.name} {symbol} {b.name}", function(a.value, b.value) + a.value.dtype.type(0))

    def extreme(self, a: Variable) -> None:
        b = self.partner(a)
        assert b is not None
        name, function = self.choose([("maximum", np.maximum), ("minimum", np.minimum)])
        self.add(f"tl.{name}({a.name}, {b.name})", function(a.value, b.value))

    def where(self, a: Variable) -> None:
        b = self.partner(a)
        assert b is not None
        symbol, function = self.choose([("<", np.less), ("==", np.equal), (">=", np.greater_equal)])
        condition = function(a.value, b.value)
        self.add(
            f"tl.where({a.name} {symbol} {b.name}, {a.name}, {b.name} + 1)",
            np.where(condition, a.value, b.value + a.value.dtype.type(1)),
        )

    def reduce(self, a: Variable) -> None:
        axis = self.number(0, len(a.shape) - 1)
        if len(a.shape) == 1:
            axis_shape = "[None]"
        else:
            axis_shape = ""
        name, function = self.choose([("sum", np.sum), ("max", np.max), ("min", np.min)])
        value = np.asarray(function(a.value, axis=axis), a.value.dtype)
        if axis_shape:
            self.add(f"tl.{name}({a.name}, 0) + tl.zeros((8,), {a.name}.dtype)", np.full(8, value))
        else:
            self.add(f"tl.{name}({a.name}, {axis})", value)

    def scan(self, a: Variable) -> None:
        axis = self.number(0, len(a.shape) - 1)
        reverse = self.choose([False, True])
        value = np.flip(a.value, axis) if reverse else a.value
        value = np.cumsum(value, axis, dtype=a.value.dtype)
        value = np.flip(value, axis) if reverse else value
        self.add(f"tl.cumsum({a.name}, {axis}, reverse={reverse})", value)

    def expand(self, a: Variable) -> None:
        if len(a.shape) < 3:
            axis = self.number(0, len(a.shape))
            self.add(f"tl.expand_dims({a.name}, {axis})", np.expand_dims(a.value, axis))

    def transpose(self, a: Variable) -> None:
        order = self.draw(st.permutations(range(len(a.shape))))
        self.add(f"tl.permute({a.name}, {tuple(order)})", a.value.transpose(order))

    def reshape(self, a: Variable) -> None:
        fitting = [shape for shape in SHAPES if np.prod(shape) == a.value.size]
        if fitting:
            shape = self.choose(fitting)
            self.add(f"tl.reshape({a.name}, {shape})", a.value.reshape(shape))

    def flip(self, a: Variable) -> None:
        axis = self.number(0, len(a.shape) - 1)
        if a.shape[axis] > 1:  # the front end cannot flip one element
            self.add(f"tl.flip({a.name}, {axis})", np.flip(a.value, axis))

    def join(self, a: Variable) -> None:
        b = self.any(lambda v: v.shape == a.shape and v.is_float == a.is_float)
        assert b is not None
        if len(a.shape) < 3:
            joined = self.add(f"tl.join({a.name}, {b.name})", np.stack([a.value, b.value], -1))
            self.lines.append(f"{self.indent}half{joined.name}, _ = tl.split({joined.name})")
            self.add(f"half{joined.name} * 2", joined.value[..., 0] * joined.value.dtype.type(2))

    def dot(self, a: Variable) -> None:
        small = self.any(lambda v: v.is_float and len(v.shape) == 2 and np.abs(v.value).max() < 512)
        if small is None:
            return
        other = self.any(
            lambda v: (
                v.is_float
                and len(v.shape) == 2
                and v.shape[0] == small.shape[1]
                and np.abs(v.value).max() < 64
            )
        )
        if other is not None:
            self.add(f"tl.dot({small.name}, {other.name})", small.value @ other.value)

    def loop(self, a: Variable) -> None:
        """Carries two tensors that change places, and reads one of outside."""
        b = self.any(lambda v: v.shape == a.shape and v.is_float == a.is_float)
        assert b is not None
        trips = self.number(0, 3)
        p, q = f"p{len(self.variables)}", f"q{len(self.variables)}"
        first, second = a.value, b.value
        for _ in range(trips):
            first, second = np.minimum(second, 99), np.maximum(first - b.value, -99)
        # The number of trips is only known when the kernel runs.
        self.lines += [
            f"{self.indent}{p}, {q} = {a.name} + 0, {b.name} + 0",
            f"{self.indent}for _ in range(trips * {trips}):",
            f"{self.indent}    {p}, {q} = tl.minimum({q}, 99), tl.maximum({p} - {b.name}, -99)",
        ]
        self.add(f"{p} + 0", first + a.value.dtype.type(0))
        self.add(f"{q} + 0", second + a.value.dtype.type(0))

    def branch(self, a: Variable) -> None:
        taken = self.choose([False, True])
        name = f"c{len(self.variables)}"
        self.lines += [
            f"{self.indent}if trips == {int(taken)}:",
            f"{self.indent}    {name} = {a.name} * 2",
            f"{self.indent}else:",
            f"{self.indent}    {name} = {a.name} - 3",
        ]
        kind = a.value.dtype.type
        self.add(f"{name} + 0", a.value * kind(2) if taken else a.value - kind(3))


def offsets(shape: tuple[int, ...]) -> str:
    terms, stride = [], 1
    for d in reversed(range(len(shape))):
        index = ", ".join(":" if i == d else "None" for i in range(len(shape)))
        terms.append(f"tl.arange(0, {shape[d]})[{index}] * {stride}")
        stride *= shape[d]
    return " + ".join(terms)


OPERATIONS = [
    Program.binary, Program.binary, Program.extreme, Program.where, Program.reduce, Program.scan, Program.expand,
    Program.transpose, Program.reshape, Program.flip, Program.join, Program.dot, Program.loop, Program.branch,
]  # fmt: skip


@st.composite
def programs(draw: Any) -> tuple[str, list[Array], list[Array]]:
    """(source of a kernel `program(inputs..., outputs..., trips)`, inputs, expected outputs); trips is to be 1."""
    program = Program(draw)
    for _ in range(program.number(1, 3)):
        program.load()
    for _ in range(program.number(1, 10)):
        with np.errstate(over="ignore"):
            program.choose(OPERATIONS)(program, program.any())
    results = program.variables[-4:]
    for number, result in enumerate(results):
        program.lines.append(f"    tl.store(O{number} + {offsets(result.shape)}, {result.name})")
    names = [v.name for v in program.inputs] + [f"O{number}" for number in range(len(results))]
    source = f"def program({', '.join(names)}, trips):\n" + "\n".join(program.lines) + "\n"
    return source, [v.value for v in program.inputs], [v.value for v in results]

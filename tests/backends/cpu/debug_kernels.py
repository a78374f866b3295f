"""Kernels with assertions and prints. A comment ``# line NAME`` marks a line that a test asks for by name."""

import triton
import triton.language as tl


def line(name: str) -> int:
    """The number of the line marked with a name."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, text in enumerate(file, 1) if text.endswith(f"  # line {name}\n"))


@triton.jit
def below(x, limit):
    tl.device_assert(x < limit, "too large")  # line below
    return x


@triton.jit
def checked_copy(x, out, limit, BLOCK: tl.constexpr):
    """out = x, where x < limit"""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.device_assert(value < limit, "too large")  # line copy
    tl.store(out + at, value)


@triton.jit
def nested_check(x, out, limit, BLOCK: tl.constexpr):
    """The same, checked in a function."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, below(tl.load(x + at), limit))


@triton.jit
def masked_check(x, n, BLOCK: tl.constexpr):
    """x[i] is i for i < n"""
    at = tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + at) == at, "not in order", mask=at < n)


@triton.jit
def check_tile(x, M: tl.constexpr, N: tl.constexpr):
    """No element is negative."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.device_assert(tl.load(x + at) >= 0, "negative")


@triton.jit
def check_programs(first):
    """Programs before (x, y, z), in linear order."""
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    p = (k * tl.num_programs(1) + j) * tl.num_programs(0) + i
    assert p != first, "this one"


@triton.jit
def check_message(x, MESSAGE: tl.constexpr):
    tl.device_assert(tl.load(x) == 0, MESSAGE)  # line message


@triton.jit
def check_in_loop(x, out, n):
    """out[0] = the sum of x[:n], which are not negative"""
    total = 0.0
    for i in range(n):
        value = tl.load(x + i)
        if i % 2 == 1:
            tl.device_assert(value >= 0, "negative")
        total += value
    tl.store(out, total)


@triton.jit
def guarded_store(out, index, n):
    """out[index] = 1, which must lie in the array"""
    tl.store(out, 7)
    tl.device_assert(index < n, "out of bounds")
    tl.store(out + index, 1)


@triton.jit
def arithmetic(x, y, out, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    if KIND == "add":
        result = a + b
    elif KIND == "sub":
        result = a - b
    elif KIND == "mul":
        result = a * b
    elif KIND == "cumsum":
        result = tl.cumsum(a, 0)
    else:
        result = tl.sum(a, 0) + tl.zeros([BLOCK], a.dtype)
    tl.store(out + at, result)


@triton.jit
def plain_copy(x, out, limit, BLOCK: tl.constexpr):
    """What `checked_copy` is without its assertion."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value)


@triton.jit
def print_values(x, BLOCK: tl.constexpr, HEX: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, BLOCK)), hex=HEX)


@triton.jit
def print_scalars(a, b: tl.uint8, p):
    tl.device_print("values", a, b, p)


@triton.jit
def print_pointers(p):
    tl.device_print("at", p + tl.arange(0, 4))


@triton.jit
def print_text():
    tl.device_print('100% "sure" \\ %s %n')
    print("short")


@triton.jit
def print_tile(x):
    at = tl.arange(0, 2)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.device_print("", tl.load(x + at))


@triton.jit
def print_programs(x, BLOCK: tl.constexpr):
    tl.device_print("value", tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))


@triton.jit
def print_between_stores(x):
    at = tl.arange(0, 2)
    tl.store(x + at, 1)
    tl.device_print("first", tl.load(x + at))
    tl.store(x + at, 2)
    tl.device_print("second", tl.load(x + at))
    for i in range(2):
        if i == 1:
            tl.device_print("last", i)


@triton.jit
def print_masked(x, n):
    at = tl.arange(0, 4)
    tl.device_print("x", tl.load(x + at, mask=at < n, other=-1))

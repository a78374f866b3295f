"""Control flow end to end: loops, conditions, early returns, and what they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import assert_same, empty, get, put


def integers(*shape: int) -> Any:
    return np.random.default_rng(4).integers(-9, 10, shape).astype(np.int32)


@triton.jit
def fibonacci_kernel(A, B, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(A + i), tl.load(B + i)
    for _ in range(n):
        a, b = b, a + b
    tl.store(O + i, a)
    tl.store(O + N + i, b)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_tensors_swap_in_a_loop(n: int) -> None:
    a, b = integers(2, 64)
    out = empty((2, 64), "i32")
    fibonacci_kernel[(1,)](put(a, "i32"), put(b, "i32"), out, n, N=64)
    for _ in range(n):
        a, b = b, a + b
    assert_same(get(out), np.stack([a, b]))


@triton.jit
def rotate_kernel(X, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(X + i), tl.load(X + N + i), tl.load(X + 2 * N + i)
    for _ in range(n):
        a, b, c = b, c, a
    tl.store(O + i, a)
    tl.store(O + N + i, b)
    tl.store(O + 2 * N + i, c)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_tensors_rotate_in_a_loop(n: int) -> None:
    x = integers(3, 32)
    out = empty((3, 32), "i32")
    rotate_kernel[(1,)](put(x, "i32"), out, n, N=32)
    assert_same(get(out), np.roll(x, -n, 0))


@triton.jit
def carried_inwards_kernel(X, O, n, m, WAY: tl.constexpr, N: tl.constexpr):
    """What an inner loop carries goes on where the outer one left it, unless something else needs that."""
    i = tl.arange(0, N)
    a, b = tl.load(X + i), tl.load(X + N + i)
    for j in range(n):
        before = a
        for k in range(m):
            if WAY == 1:
                a, b = b, a + k
            elif WAY == 4:
                a += before + k
            else:
                a += j + k
        for k in range(m):
            a = a * 3 + k
        if WAY == 2:
            a, b = b, a
        if WAY == 3:
            b += before
    tl.store(O + i, a)
    tl.store(O + N + i, b)


@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize(("n", "m"), [(0, 1), (1, 0), (3, 2)])
def test_nested_loops_carry_tensors(way: int, n: int, m: int) -> None:
    a, b = x = integers(2, 64)
    out = empty((2, 64), "i32")
    carried_inwards_kernel[(1,)](put(x, "i32"), out, n, m, WAY=way, N=64)
    for j in range(n):
        before = a
        for k in range(m):
            if way == 1:
                a, b = b, a + k
            else:
                a = a + (before + k if way == 4 else j + k)
        for k in range(m):
            a = a * 3 + k
        if way == 2:
            a, b = b, a
        if way == 3:
            b = b + before
    assert_same(get(out), np.stack([a, b]))


@triton.jit
def mixed_kernel(X, O, n, N: tl.constexpr):
    """Each new value reads all the old ones, elsewhere than at its own element."""
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(X + r * N + c), tl.load(X + N * N + r * N + c)
    s = 1
    for k in range(n):
        a, b, s = tl.trans(b) + s, a - tl.sum(b, 1)[:, None], s + k
    tl.store(O + r * N + c, a)
    tl.store(O + N * N + r * N + c, b)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_carried_values_read_each_other_transposed_and_reduced(n: int) -> None:
    x = integers(2, 16, 16)
    out = empty((2, 16, 16), "i32")
    mixed_kernel[(1,)](put(x, "i32"), out, n, N=16)
    (a, b), s = x, 1
    for k in range(n):
        a, b, s = b.T + s, a - b.sum(1, dtype=np.int32)[:, None], s + k
    assert_same(get(out), np.stack([a, b]))


@triton.jit
def cycles_kernel(X, O, n, WAY: tl.constexpr, N: tl.constexpr):
    """Each new value reads two or three of the old ones, so that more than one has to be set aside."""
    i = tl.arange(0, N)
    a, b, c = tl.load(X + i), tl.load(X + N + i), tl.load(X + 2 * N + i)
    d = a - c
    for _ in range(n):
        s = (b | c) - c
        if WAY == "three":
            a, b, c = s * 3, s, s ^ a
        elif WAY == "pairs":
            a, b, c, d = b + 1, a * 3, d ^ 5, c - d
        else:
            a, b, c, d = s - d, s ^ a, d + b, a | b
    tl.store(O + i, a)
    tl.store(O + N + i, b)
    tl.store(O + 2 * N + i, c)
    tl.store(O + 3 * N + i, d)


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("way", ["three", "pairs", "all"])
def test_carried_values_read_each_other_in_cycles(way: str, n: int) -> None:
    x = integers(3, 64)
    out = empty((4, 64), "i32")
    cycles_kernel[(1,)](put(x, "i32"), out, n, WAY=way, N=64)
    a, b, c = x
    d = a - c
    for _ in range(n):
        s = (b | c) - c
        if way == "three":
            a, b, c = s * 3, s, s ^ a
        elif way == "pairs":
            a, b, c, d = b + 1, a * 3, d ^ 5, c - d
        else:
            a, b, c, d = s - d, s ^ a, d + b, a | b
    assert_same(get(out), np.stack([a, b, c, d]))


@triton.jit
def dear_values_kernel(X, O, n, N: tl.constexpr):
    """What is carried is dear, and used through broadcasts: it needs scratch of its own in the loop's last line."""
    i = tl.arange(0, N)
    a, b = tl.load(X + i), tl.load(X + N + i)
    square = tl.zeros((N, N), tl.float32)
    for _ in range(n):
        ea, eb = tl.exp(a * 0.125), tl.exp(b * 0.125)
        ca, cb = tl.cumsum(ea, 0), tl.cumsum(eb, 0)
        a, b = eb + tl.cumsum(ca, 0) * 0.0, ea + cb * 0.0
        square += tl.exp(ca * 0.01)[:, None] * tl.exp(cb * 0.01)[None, :]
    tl.store(O + i, a)
    tl.store(O + N + i, b)
    tl.store(O + 2 * N + i[:, None] * N + i[None, :], square)


@pytest.mark.parametrize("n", [1, 3])
def test_dear_carried_values(n: int) -> None:
    x = np.random.default_rng(5).standard_normal((2, 16)).astype(np.float32)
    out = empty(32 + 256, "fp32")
    dear_values_kernel[(1,)](put(x, "fp32"), out, n, N=16)
    a, b = x.astype(np.float64)
    square = np.zeros((16, 16))
    for _ in range(n):
        ea, eb = np.exp(a * 0.125), np.exp(b * 0.125)
        square += np.outer(np.exp(np.cumsum(ea) * 0.01), np.exp(np.cumsum(eb) * 0.01))
        a, b = eb, ea
    np.testing.assert_allclose(get(out)[:32], np.concatenate([a, b]), rtol=1e-5)
    np.testing.assert_allclose(get(out)[32:].reshape(16, 16), square, rtol=1e-5)


@triton.jit
def nested_kernel(X, O, rows, columns, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.int32)
    for r in range(rows):
        row = tl.zeros((N,), tl.int32)
        for c in range(r, columns, 2):
            row += tl.load(X + (r * columns + c) * N + i) * (c + 1)
        total = total * 2 + row
    tl.store(O + i, total)


def test_nested_loops() -> None:
    x = integers(3, 7, 32)
    out = empty(32, "i32")
    nested_kernel[(1,)](put(x, "i32"), out, 3, 7, N=32)
    total = np.zeros(32, np.int32)
    for r in range(3):
        total = total * 2 + sum((x[r, c] * (c + 1) for c in range(r, 7, 2)), np.zeros(32, np.int32))
    assert_same(get(out), total)


@triton.jit
def downward_kernel(X, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.int32)
    for k in range(n - 1, -1, -1):
        total = total * 3 + tl.load(X + k * N + i)
    tl.store(O + i, total)


def test_downward_loop() -> None:
    x = integers(4, 16)
    out = empty(16, "i32")
    downward_kernel[(1,)](put(x, "i32"), out, 4, N=16)
    assert_same(get(out), ((x[3] * 3 + x[2]) * 3 + x[1]) * 3 + x[0])


@triton.jit
def moving_pointers_kernel(X, O, n, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    p, q, scalar = X + i, O + N - 1 - i, X
    total = 0
    for _ in range(n):
        tl.store(q, tl.load(p) * 2)
        total += tl.load(scalar)
        p += stride
        q += N
        scalar += stride
    tl.store(q, total)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_pointers_move_in_a_loop(n: int) -> None:
    x = integers(4, 40)
    out = empty((4, 32), "i32", 0)
    moving_pointers_kernel[(1,)](put(x, "i32"), out, n, 40, N=32)
    expected = np.zeros((4, 32), np.int32)
    expected[:n] = x[:n, :32][:, ::-1] * 2
    expected[n] = x[:n, 0].sum()
    assert_same(get(out), expected)


@triton.jit
def collatz_kernel(X, O, N: tl.constexpr):
    at = tl.program_id(0)
    x = tl.load(X + at)
    steps = 0
    trail = tl.zeros((N,), tl.int32)
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
        trail = tl.where(tl.arange(0, N) == steps % N, x, trail)
    tl.store(O + at * (N + 1), steps)
    tl.store(O + at * (N + 1) + 1 + tl.arange(0, N), trail)


def test_while_loop_with_condition_inside() -> None:
    x = np.array([1, 2, 3, 7, 27], np.int32)
    out = empty((5, 17), "i32")
    collatz_kernel[(5,)](put(x, "i32"), out, N=16)
    for start, row in zip(x.tolist(), get(out), strict=True):
        steps, trail = 0, [0] * 16
        while start != 1:
            start = start // 2 if start % 2 == 0 else 3 * start + 1
            steps += 1
            trail[steps % 16] = start
        assert row.tolist() == [steps, *trail]


@triton.jit
def while_swap_kernel(A, B, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(A + i), tl.load(B + i)
    while tl.max(a, 0) < n:
        a, b = b + 1, tl.flip(a, 0) + b
    tl.store(O + i, a)
    tl.store(O + N + i, b)


@pytest.mark.parametrize("n", [-100, 40])
def test_while_loop_carries_tensors(n: int) -> None:
    a, b = np.abs(integers(2, 32))
    out = empty((2, 32), "i32")
    while_swap_kernel[(1,)](put(a, "i32"), put(b, "i32"), out, n, N=32)
    while a.max() < n:
        a, b = b + 1, a[::-1] + b
    assert_same(get(out), np.stack([a, b]))


@triton.jit
def branches_kernel(X, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    if n > 0:
        y = x * 2
        if n > 1:
            y = tl.cumsum(y, 0)
            k = 5
        else:
            k = n
    elif n == 0:
        y = tl.flip(x, 0)
        k = 7
    else:
        y = x
        k = -1
    tl.store(O + i, y + k + x)
    if n == 1:
        tl.store(O + i, 0, mask=i < 4)


@pytest.mark.parametrize("n", [-1, 0, 1, 2])
def test_conditions_give_tensors_and_scalars(n: int) -> None:
    x = integers(64)
    out = empty(64, "i32")
    branches_kernel[(1,)](put(x, "i32"), out, n, N=64)
    y, k = {2: (np.cumsum(x * 2), 5), 1: (x * 2, 1), 0: (x[::-1], 7), -1: (x, -1)}[n]
    expected = y + k + x
    if n == 1:
        expected[:4] = 0
    assert_same(get(out), expected)


@triton.jit
def conditional_update_kernel(X, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc, extra = tl.zeros((N,), tl.float32), tl.load(X + i)
    for k in range(n):
        if k % 2 == 0:
            acc += extra
        else:
            acc, extra = extra, acc * 0.5
    tl.store(O + i, acc)
    tl.store(O + N + i, extra)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_conditions_inside_loops(n: int) -> None:
    x = integers(32).astype(np.float32)
    out = empty((2, 32), "fp32")
    conditional_update_kernel[(1,)](put(x, "fp32"), out, n, N=32)
    acc, extra = np.zeros(32, np.float32), x
    for k in range(n):
        if k % 2 == 0:
            acc = acc + extra
        else:
            acc, extra = extra, acc * np.float32(0.5)
    np.testing.assert_array_equal(get(out), np.stack([acc, extra]))


@triton.jit
def early_return_kernel(X, O, n, N: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    i = tl.arange(0, N)
    x = tl.load(X + i)
    if pid == 1:
        tl.store(O + pid * N + i, -x)
        return
    tl.store(O + pid * N + i, x + pid)


def test_early_return() -> None:
    x = integers(16)
    out = empty((4, 16), "i32", 0)
    early_return_kernel[(4,)](put(x, "i32"), out, 3, N=16)
    assert_same(get(out), np.stack([x, -x, x + 2, x * 0]))


@triton.jit
def grid_kernel(O, P):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(O + x + nx * (y + ny * z), x + 100 * y + 10000 * z)
    tl.store(P, nx)
    tl.store(P + 1, ny)
    tl.store(P + 2, tl.num_programs(2))


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (2, 3, 4), (1, 1, 6), (1, 9)])
def test_grids(grid: tuple[int, ...]) -> None:
    nx, ny, nz = (*grid, 1, 1)[:3]
    out, counts = empty((nz, ny, nx), "i32"), empty(3, "i32")
    grid_kernel[grid](out, counts)
    z, y, x = np.indices((nz, ny, nx))
    assert_same(get(out), x + 100 * y + 10000 * z)
    assert get(counts).tolist() == [nx, ny, nz]


@triton.constexpr_function
def twice(n):
    return n * 2


@triton.jit
def pair(x, scale: tl.constexpr):
    return x * scale, x + scale


@triton.jit
def apply(function: tl.constexpr, x, y):
    return function(x, y)


@triton.jit
def smaller(x, y):
    return tl.minimum(x, y)


@triton.jit
def compile_time_kernel(X, O, table, N: tl.constexpr, DEEP: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    values = pair(x, twice(N))
    y = values[0] - values[1]
    for k in tl.static_range(3):
        if DEEP:
            y += k * table[k]
        else:
            y -= k
    tl.static_assert(N == 32)
    tl.store(O + i, apply(smaller, y, values[1]))


@pytest.mark.parametrize("deep", [False, True])
def test_constexpr_functions_tuples_and_function_arguments(deep: bool) -> None:
    x = integers(32)
    out = empty(32, "i32")
    compile_time_kernel[(1,)](put(x, "i32"), out, (4, 5, 6), N=32, DEEP=deep)
    y = x * 64 - (x + 64) + ((5 + 12) if deep else -3)
    assert_same(get(out), np.minimum(y, x + 64))


@triton.jit
def region_use_kernel(X, O, n, N: tl.constexpr):
    """A tensor of the outer block that only some iterations of an inner block need, and that is needed afterwards."""
    i = tl.arange(0, N)
    x = tl.load(X + i)
    dear = tl.exp(x.to(tl.float32) * 0.1)
    for k in range(n):
        if k == 1:
            tl.store(O + i, dear)
        tl.store(X + i, x + k)
    tl.store(O + N + i, dear + x)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_outer_values_in_inner_regions(n: int) -> None:
    x = integers(32)
    array, out = put(x, "i32"), empty((2, 32), "fp32", 0)
    region_use_kernel[(1,)](array, out, n, N=32)
    exact = np.exp(x * 0.1)
    np.testing.assert_allclose(get(out)[0], exact if n > 1 else exact * 0, rtol=1e-6)
    np.testing.assert_allclose(get(out)[1], exact + x, rtol=1e-5, atol=1e-5)
    assert_same(get(array), x + max(n - 1, 0))


@triton.jit
def masked_sums_kernel(X, O, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """Inductor's form of a reduction in a loop. What is loaded out of bounds must not be added."""
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    total, last = tl.zeros([M, N], tl.int32), tl.zeros([M, N], tl.int32)
    for start in range(0, columns, N):
        inside = (start + c < columns) & (r < rows)
        x = tl.load(X + r * columns + start + c, inside, other=1000)
        total, last = tl.where(inside, total + x, total), tl.where(inside, total, last)
    tl.store(O + r * N + c, total)
    tl.store(O + M * N + r * N + c, last)


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200, 256])
@pytest.mark.parametrize(("rows", "M"), [(1, 1), (3, 4)])
def test_carried_values_stay_where_a_mask_is_not_set(rows: int, M: int, columns: int) -> None:
    x = integers(rows, columns)
    out = empty((2, M, 64), "i32")
    masked_sums_kernel[(1,)](put(x, "i32"), out, rows, columns, M=M, N=64)
    total, last = np.zeros((2, M, 64), np.int32)
    for start in range(0, columns, 64):
        part = x[:, start : start + 64]
        last[:rows, : part.shape[1]] = total[:rows, : part.shape[1]]
        total[:rows, : part.shape[1]] += part
    assert_same(get(out), np.stack([total, last]))


@triton.jit
def masked_wrap_kernel(X, O, start, n, N: tl.constexpr):
    """Where ``start + i`` wraps around, the mask is set again."""
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.int32)
    for _ in range(2):
        inside = start + i < n
        total = tl.where(inside, total + tl.load(X + i, i < 70, other=5), total)
    tl.store(O + i, total)


@pytest.mark.parametrize("start", [0, 2**31 - 100])
def test_carried_values_change_where_the_index_in_a_mask_wraps(start: int) -> None:
    x = integers(128)
    out = empty(128, "i32")
    masked_wrap_kernel[(1,)](put(x, "i32"), out, start, 2**31 - 50 if start else 70, N=128)
    i = np.arange(128)
    inside = (i < 50) | (i >= 100) if start else i < 70
    assert_same(get(out), np.where(inside, 2 * np.where(i < 70, x, 5), 0).astype(np.int32))

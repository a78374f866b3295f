"""Properties that hold for all kernels: masks protect what lies around."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import get, put

# Replayable: the examples are the same in every run, and a failing one prints its source.
REPLAYABLE = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)


@triton.jit
def box_kernel(
    X, O, x_start, o_start, xr, xc, o_r, oc, low_r, high_r, low_c, high_c, step,
    R: tl.constexpr, C: tl.constexpr, FORM: tl.constexpr, OTHER: tl.constexpr,
):  # fmt: skip
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    x_at = X + x_start + r * xr + c * xc
    o_at = O + o_start + r * o_r + c * oc
    box = (r >= low_r) & (r < high_r) & (c >= low_c) & (c < high_c)
    if FORM == "box":
        mask = box
    elif FORM == "rows":
        mask = (r >= low_r) & (r < high_r) & (c >= 0)
    elif FORM == "general":
        mask = (r * 3 + c) % step == 0
    else:
        mask = box & ((r + c) % step == 0)
    if OTHER == "none":
        x = tl.load(x_at, mask=mask)
    elif OTHER == "scalar":
        x = tl.load(x_at, mask=mask, other=-5)
    else:
        x = tl.load(x_at, mask=mask, other=(r - c).to(X.dtype.element_ty))
    tl.store(O + o_start + R * 1000 + r * C + c, x)
    tl.store(o_at, x * 2, mask=mask)


GUARD = 3000
POISON = 77


@settings(REPLAYABLE, max_examples=200)
@given(st.data())
def test_masks_protect_what_lies_around(data: Any) -> None:
    rows, columns = data.draw(st.sampled_from([(1, 64), (4, 32), (16, 16), (8, 1), (2, 8), (32, 4)]))
    kind = data.draw(st.sampled_from(["i32", "fp32", "i8", "fp64", "fp16"]))
    form = data.draw(st.sampled_from(["box", "rows", "general", "both"]))
    other = data.draw(st.sampled_from(["none", "scalar", "tensor"]))
    numbers = st.integers(-4, 36)
    low_r, high_r, low_c, high_c = (data.draw(numbers) for _ in range(4))
    step = data.draw(st.integers(1, 5))
    strides = st.integers(-9, 9)
    xr, xc = data.draw(strides), data.draw(strides)
    # Stores to one place from several elements have no one result: rows of the output do not overlap.
    oc = data.draw(st.sampled_from([1, -1, 2, 3, -2]))
    o_r = (abs(oc) * columns + data.draw(st.integers(0, 3))) * data.draw(st.sampled_from([1, -1]))

    from running import KINDS

    host = KINDS[kind].host
    size = 2 * GUARD + 64000
    x = np.full(size, POISON, host)
    r, c = np.arange(rows)[:, None], np.arange(columns)
    box = (r >= low_r) & (r < high_r) & (c >= low_c) & (c < high_c)
    general = (r + c) % step == 0
    mask = {
        "box": box,
        "rows": (r >= low_r) & (r < high_r) & (c >= 0),
        "general": (r * 3 + c) % step == 0,
        "both": box & general,
    }[form]
    x_at = GUARD + 400 + r * xr + c * xc
    o_at = GUARD + 2500 + r * o_r + c * oc
    # Only what the mask lets through holds numbers that may show up.
    x[x_at[mask]] = np.arange(x_at[mask].size) % 50
    fill = {"none": 0, "scalar": -5, "tensor": (r - c)}[other]
    loaded = np.where(mask, x[x_at], np.asarray(fill).astype(host))
    out = np.full(size, POISON, host)
    expected = out.copy()
    whole = GUARD + 2500 + rows * 1000 + r * columns + c
    expected[whole] = loaded
    expected[o_at[mask]] = loaded[mask] * host.type(2)
    x_array, o_array = put(x, kind), put(out, kind)
    box_kernel[(1,)](
        x_array, o_array, GUARD + 400, GUARD + 2500, xr, xc, o_r, oc, low_r, high_r, low_c, high_c, step,
        R=rows, C=columns, FORM=form, OTHER=other,
    )  # fmt: skip
    np.testing.assert_array_equal(get(o_array), expected)
    np.testing.assert_array_equal(get(x_array), x, "an input was written to")


AT_THE_EDGE = """
import ctypes, mmap, sys
import numpy as np
import triton, triton.language as tl

@triton.jit
def copy(X, O, n, start, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + start + i, mask=(i >= 5) & (i < n), other=-1)
    tl.store(O + start + i, x + 1, mask=(i >= 5) & (i < n))
    y = tl.load(X + start + i * 3, mask=(i >= 5) & (i * 3 < n), other=-1)
    tl.store(O + start + i * 3, y + 2, mask=(i >= 5) & (i * 3 < n))

class Window:
    dtype = np.dtype("int32")
    def __init__(self, address): self.address = address
    def data_ptr(self): return self.address

page = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
windows = []
for _ in range(2):
    memory = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (start, start + 2 * page):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
    windows.append((memory, np.frombuffer(memory, np.int32, page // 4, page), Window(start + page)))
(_, x, at_x), (_, o, at_o) = windows
x[:] = np.arange(x.size)
for n in (0, 5, 6, 37, 64):
    for begin in (x.size - n, -5):  # the last elements before one guard page, the first behind the other
        o[:] = 0
        copy[(1,)](at_x, at_o, n, begin, B=64)
        i = np.arange(5, n)
        expected = np.zeros_like(o)
        expected[begin + i] = x[begin + i] + 1
        j = i[i * 3 < n]
        expected[begin + j * 3] = x[begin + j * 3] + 2
        assert (o == expected).all(), (n, begin)
print("untouched")
"""


def test_masked_lanes_touch_no_memory(tmp_path: Path) -> None:
    """Pages without access lie before and behind the arrays: reading or writing there would end the process."""
    script = tmp_path / "at_the_edge.py"
    script.write_text(AT_THE_EDGE)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout.strip()) == (0, "untouched"), result.stderr

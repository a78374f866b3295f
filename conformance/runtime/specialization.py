"""Triton's specialisations of kernels, for ones, multiples of 16 and aligned pointers, do not change results."""

from __future__ import annotations

from functools import partial

import numpy as np
import triton

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.arguments import Interior

CHECKS = Checks("runtime/specialization")

NUMBERS = "def numbers(O, a, b, c):\n    tl.store(O, a)\n    tl.store(O + 1, b)\n    tl.store(O + 2, c)\n"
SHIFT = (
    "def shift(X, O, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(O + i, tl.load(X + i, mask=i < n) + n, mask=i < n)\n"
)


def _numbers(context: Context, values: list[tuple[int, int, int]], **options: object) -> None:
    """Launch one kernel with several triples in succession."""
    kernel = make_kernel(NUMBERS)
    if options:
        kernel = triton.jit(kernel.fn, **options)
    for triple in values:
        out = context.empty((3,), "i64")
        kernel[(1,)](out, *triple)
        context.compare(str(triple), identical(context.read(out), np.array(triple, np.int64)))


_TRIPLES = {
    "ones": [(1, 1, 1), (1, 2, 1), (2, 1, 2), (1, 1, 3), (0, 1, 0)],
    "sixteens": [(16, 32, 48), (16, 17, 0), (15, 16, 17), (0, 0, 16), (-16, -32, -15), (17, 48, 1)],
    "widths": [
        (1 << 31, 1, 16),
        (1, 1 << 40, 3),
        ((1 << 31) - 1, -(1 << 31), -(1 << 31) - 1),
        (3, 1 << 31, 16),
    ],
}

for _name, _what in {
    "ones": "Alternating ones, twos and zeros",
    "sixteens": "Alternating multiples of 16 and other numbers",
    "widths": "Alternating numbers of 32 and of 64 bits",
}.items():
    CHECKS.add(
        f"{_name}",
        f"{_what} reach one kernel unchanged, however it was specialised before.",
        partial(_numbers, values=_TRIPLES[_name]),
    )
    CHECKS.add(
        f"{_name}-not-specialized",
        f"{_what} reach one kernel unchanged if specialisation for them is disabled.",
        partial(_numbers, values=_TRIPLES[_name], do_not_specialize=["a", "b", "c"]),
    )


@CHECKS.check(
    "sixteens-not-aligned",
    "Multiples of 16 reach a kernel unchanged if specialisation for alignment is disabled.",
)
def _not_aligned(context: Context) -> None:
    _numbers(context, _TRIPLES["sixteens"], do_not_specialize_on_alignment=["a", "b", "c"])


def _shift(context: Context, count: int, source: int, target: int) -> None:
    values = context.random.integers(-1000, 1000, 200).astype(np.int32)
    given, out = context.array(values, "i32"), context.array(np.full(200, 7, np.int32), "i32")
    make_kernel(SHIFT)[(triton.cdiv(count, 32),)](
        Interior(given, source), Interior(out, target), count, BLOCK=32
    )
    expected = np.full(200, 7, np.int32)
    expected[target : target + count] = values[source : source + count] + count
    context.compare("all elements", identical(context.read(out), expected))


for _count in (1, 2, 15, 16, 17, 31, 32, 33, 64, 150):
    CHECKS.add(
        f"length-{_count}",
        f"A kernel over {_count} elements computes the same as over any other number, and writes nothing else.",
        partial(_shift, count=_count, source=0, target=0),
        elements=32,
    )
for _source, _target in ((0, 1), (1, 0), (1, 1), (4, 4), (3, 4), (2, 16), (5, 9)):
    for _count in (16, 37):
        CHECKS.add(
            f"offset-{_source}-{_target}-length-{_count}",
            f"A kernel from element {_source} to element {_target} of arrays, over {_count} elements, assumes no "
            "alignment that the pointers do not have.",
            partial(_shift, count=_count, source=_source, target=_target),
            elements=32,
        )


@CHECKS.check(
    "alignment-in-turns",
    "Alternating aligned and unaligned pointers reach one kernel unchanged, however it was specialised before.",
    elements=32,
)
def _alignment_in_turns(context: Context) -> None:
    for source, target in ((0, 0), (1, 0), (0, 0), (0, 3), (16, 4), (1, 1), (0, 0)):
        _shift(context, 64, source, target)

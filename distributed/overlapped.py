"""Operations that compute while they communicate: products, experts and attention over several ranks."""

from __future__ import annotations

import math
from typing import Any

from triton_porting_kit.distributed import overlapped_kernels as kernels
from triton_porting_kit.distributed.collectives import Array, element_name
from triton_porting_kit.distributed.group import Group
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import InvalidArgument

_FLOATS = ("float16", "bfloat16", "float32")


class Dispatched:
    """What `Overlapped.dispatch` gives: the rows that this rank's experts got, in symmetric memory.

    `rows` is ranks by room by width: part s has the rows of rank s, of which ``counts[s]`` are there. `experts`, ranks
    by room, has the expert of each. `Overlapped.combine` takes results of the same layout as `rows`.
    """

    def __init__(
        self, rows: DeviceArray, experts: DeviceArray, counts: DeviceArray, slots: DeviceArray
    ) -> None:
        self.rows, self.experts, self.counts, self.slots = rows, experts, counts, slots


class Overlapped:
    """Overlapped operations of a group. Every method is called by all ranks in the same order, with arrays of the same
    shapes and types, contiguous and in memory of the device.

    A method launches one kernel on Triton's current stream. Buffers in symmetric memory are allocated at the first call
    of a size and kept; allocation is collective. Floats are float16, bfloat16 or float32; sums are float32.
    """

    def __init__(self, group: Group, programs: int | None = None, block: int = 64, inner: int = 32) -> None:
        """`programs`: how many programs each rank runs at most; by default its share of the cores. `block`: rows and
        columns of a tile, `inner`: the summed dimension; powers of two from 16 on. Collective."""
        self.group = group
        self._block, self._inner = block, inner
        cores = group.device.properties().core_count
        mine = max(1, cores // group.ranks) if programs is None else programs
        self._programs = min(int(each) for each in group.exchange(str(mine).encode()))
        self._buffers: dict[str, DeviceArray] = {}

    def all_gather_matmul(self, a: Array, b: Array, out: Array) -> None:
        """Let `out` be every rank's `a`, M by K, one after the other, times this rank's `b`, K by N."""
        m, k, n = self._product_of("all_gather_matmul", a, b)
        ranks = self.group.ranks
        _fits("all_gather_matmul", "out", out, (ranks * m, n))
        gathered = self._buffer("gathered", ranks * m * k, element_name(a))
        words, signals = self._words("gather words", 2), self._words("gather signals", ranks)
        kernels.all_gather_matmul_kernel[self._grid(m)](
            self.group.context, words, signals, a, gathered, b, out, m, n, k, RANKS=ranks, **self._tile()
        )

    def matmul_reduce_scatter(self, a: Array, b: Array, out: Array) -> None:
        """Let `out`, M by N, be this rank's rows of the sum of every rank's `a`, ranks * M by K, times `b`, K by N."""
        rows, k, n = self._product_of("matmul_reduce_scatter", a, b)
        ranks = self.group.ranks
        if rows % ranks:
            raise InvalidArgument(
                f"matmul_reduce_scatter: {rows} rows are not a part of equal size for each of {ranks} ranks"
            )
        m = rows // ranks
        _fits("matmul_reduce_scatter", "out", out, (m, n))
        partial = self._buffer("partial", rows * n, "float32")
        words, signals = self._words("scatter words", 2), self._words("scatter signals", ranks)
        kernels.matmul_reduce_scatter_kernel[self._grid(m)](
            self.group.context, words, signals, a, b, partial, out, m, n, k, RANKS=ranks, **self._tile()
        )

    def dispatch(self, x: Array, experts: Array, count: int) -> Dispatched:
        """Send each row of `x`, tokens by width, to the ranks that have its experts.

        `experts`, int32, tokens by top, are numbers below `count`, different in each row. Rank r has the experts from
        r * count / ranks on. The result is valid until the next call.
        """
        ranks = self.group.ranks
        tokens, width, top = self._tokens("dispatch", x, experts)
        if count < 1 or count % ranks:
            raise InvalidArgument(
                f"dispatch: {count} experts are not the same number for each of {ranks} ranks"
            )
        room = tokens * top
        rows = self._buffer("received", ranks * room * width, element_name(x))
        numbers = self._buffer("received experts", ranks * room, "int32")
        counts = self._buffer("received counts", ranks, "int32")
        slots = self._buffer("slots", room, "int32")
        words, signals = (
            self._buffer("dispatch words", 2 * ranks, "int64"),
            self._words("dispatch signals", ranks),
        )
        kernels.dispatch_kernel[(ranks,)](
            self.group.context, words, signals, x, experts, rows, numbers, counts, slots, room, width,
            count // ranks, room, TOP=top, RANKS=ranks, BLOCK=self._block, BLOCK_W=self._block,
        )  # fmt: skip
        return Dispatched(
            rows[: ranks * room * width].reshape(ranks, room, width),
            numbers[: ranks * room].reshape(ranks, room),
            counts[:ranks],
            slots[:room],
        )

    def combine(
        self, results: Array, experts: Array, weights: Array, dispatched: Dispatched, count: int, out: Array
    ) -> None:
        """Let row t of `out`, tokens by width, be the sum of what the experts of token t have made of it, times
        `weights`.

        `results`, in symmetric memory, has the layout of ``dispatched.rows``, which may be it. `experts`, `dispatched`
        and `count` are those of `dispatch`; `weights`, float32, has the shape of `experts`.
        """
        tokens, width, top = self._tokens("combine", out, experts)
        ranks, room = self.group.ranks, tokens * top
        _fits("combine", "results", results, (ranks, room, width))
        _fits("combine", "weights", weights, (tokens, top))
        words = self._words("combine words", 2)
        kernels.combine_kernel[self._grid(tokens)](
            self.group.context, words, results, experts, weights, dispatched.slots, out, tokens, width,
            count // ranks, room, TOP=top, BLOCK=self._block, BLOCK_W=self._block,
        )  # fmt: skip

    def ring_attention(
        self, q: Array, k: Array, v: Array, out: Array, *, causal: bool = False, scale: float | None = None
    ) -> None:
        """Let `out` be softmax(q kᵀ scale) v, where each rank has a part of the sequence; all are heads by sequence by
        depth.

        Parts are in the order of ranks. `causal`: a position sees those up to itself. `scale`: by default 1 / √depth.
        The depth is a power of two from 16 on. Every rank has the keys and values of two parts at a time.
        """
        shape = tuple(int(extent) for extent in q.shape)
        if len(shape) != 3 or shape[2] < 16 or shape[2] & (shape[2] - 1):
            raise InvalidArgument(
                f"ring_attention: q has the shape {shape}, not heads by sequence by depth, a power of two from 16 on"
            )
        for name, array in (("k", k), ("v", v), ("out", out)):
            _fits("ring_attention", name, array, shape)
        heads, sequence, depth = shape
        size, ranks = math.prod(shape), self.group.ranks
        keys = self._buffer("keys", 2 * size, element_name(k))
        values = self._buffer("values", 2 * size, element_name(v))
        words = self._buffer("ring words", 2 * heads, "int64")
        arrived, freed = self._buffer("arrived", heads, "int64"), self._buffer("freed", heads, "int64")
        device = self.group.device
        sums = DeviceArray.zeros(size, "float32", device)
        largest = DeviceArray.full(heads * sequence, -math.inf, "float32", device)
        weights = DeviceArray.zeros(heads * sequence, "float32", device)
        kernels.ring_attention_kernel[(max(1, min(self._programs, heads)),)](
            self.group.context, words, arrived, freed, q, k, v, keys, values, sums, largest, weights, out, heads,
            sequence, 1 / math.sqrt(depth) if scale is None else scale,
            CAUSAL=causal, RANKS=ranks, DEPTH=depth, BLOCK=self._block,
        )  # fmt: skip

    # --- buffers and arguments -----------------------------------------------------------------------------

    def _grid(self, rows: int) -> tuple[int]:
        return (max(1, min(self._programs, -(-rows // self._block))),)

    def _tile(self) -> dict[str, int]:
        return {"BLOCK_M": self._block, "BLOCK_N": self._block, "BLOCK_K": self._inner}

    def _words(self, name: str, each: int) -> DeviceArray:
        """Words of int64 that one kernel uses, `each` for a program; they keep counting from call to call."""
        return self._buffer(name, each * self._programs, "int64")

    def _buffer(self, name: str, count: int, dtype: str) -> DeviceArray:
        key = f"{name} {dtype}"
        if key not in self._buffers or self._buffers[key].numel() < count:
            self._buffers[key] = self.group.zeros(max(1, count), dtype)
        return self._buffers[key]

    def _product_of(self, call: str, a: Array, b: Array) -> tuple[int, int, int]:
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
            raise InvalidArgument(
                f"{call}: a is {tuple(a.shape)} and b is {tuple(b.shape)}, which cannot be multiplied"
            )
        if element_name(a) not in _FLOATS or element_name(a) != element_name(b):
            raise InvalidArgument(
                f"{call}: a is {element_name(a)} and b is {element_name(b)}; both are one of {', '.join(_FLOATS)}"
            )
        return int(a.shape[0]), int(a.shape[1]), int(b.shape[1])

    def _tokens(self, call: str, rows: Array, experts: Array) -> tuple[int, int, int]:
        """Tokens, width, and experts of each token."""
        shapes = tuple(rows.shape), tuple(experts.shape)
        if len(rows.shape) != 2 or len(experts.shape) != 2 or rows.shape[0] != experts.shape[0]:
            raise InvalidArgument(
                f"{call}: rows are {shapes[0]} and experts {shapes[1]}, not tokens by width and tokens by experts of "
                "each"
            )
        if element_name(experts) != "int32":
            raise InvalidArgument(f"{call}: experts are {element_name(experts)}, not int32")
        return int(rows.shape[0]), int(rows.shape[1]), int(experts.shape[1])


def _fits(call: str, name: str, array: Any, shape: tuple[int, ...]) -> None:
    if tuple(array.shape) != shape or not array.is_contiguous():
        raise InvalidArgument(
            f"{call}: {name} is {tuple(array.shape)}; it needs to be contiguous, of shape {shape}"
        )

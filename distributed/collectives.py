"""Collectives on symmetric memory: all-gather, reduce-scatter, all-reduce, all-to-all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import triton.language as tl

from triton_porting_kit.distributed import kernels
from triton_porting_kit.distributed.group import Group
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import InvalidArgument, InvalidPointer

BLOCK = 4096
"""Elements of a tile."""
_SUMS = {"float16": tl.float32, "bfloat16": tl.float32, "float32": tl.float32, "float64": tl.float64,
         "int8": tl.int8, "int16": tl.int16, "int32": tl.int32, "int64": tl.int64, "uint8": tl.uint8}  # fmt: skip
"""The types that can be summed, and the type of the sums."""
ALGORITHMS = ("one_shot", "two_shot", "ring")


class Array(Protocol):
    """A contiguous array in memory of the device: the kit's `DeviceArray`, or a torch tensor."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> Sequence[int]: ...

    def data_ptr(self) -> int: ...

    def element_size(self) -> int: ...

    def is_contiguous(self) -> bool: ...


class Collectives:
    """The collectives of a group. Every method is called by all ranks in the same order, with arrays of the same size.

    A method launches one kernel on Triton's current stream; when it has run, this rank's result is there, and its
    inputs may be overwritten. Sums are the same on all ranks, to the bit. Arguments are checked; sizes are not compared
    between ranks. Arguments that are described as symmetric must come from `Group.zeros` or `Group.tensor`, in the same
    place on all ranks.
    """

    def __init__(self, group: Group, programs: int | None = None, block: int = BLOCK) -> None:
        """`programs`: how many programs each rank runs at most; by default its share of the cores. `block`: elements of
        a tile, the same on all ranks. Collective."""
        self.group, self._block = group, block
        cores = group.device.properties().core_count
        mine = max(1, cores // group.ranks) if programs is None else programs
        self._programs = min(int(each) for each in group.exchange(str(mine).encode()))
        self._words = group.zeros(2 * self._programs, "int64")
        self._ring_words = group.zeros(2 * self._programs, "int64")
        self._ring_signals = group.zeros(self._programs, "int64")
        self._received: DeviceArray | None = None

    def all_gather(self, source: Array, out: Array) -> None:
        """Let `out`, which is symmetric, have the `source` of every rank, one after the other."""
        count = self._count("all_gather", source)
        self._fits("all_gather", source, out, count * self.group.ranks)
        self._symmetric("all_gather", "out", out)
        self._launch(kernels.all_gather_kernel, count, source, out)

    def all_to_all(self, source: Array, out: Array) -> None:
        """Let part p of `out`, which is symmetric, be the part of rank p's `source` that has this rank's number."""
        count = self._part("all_to_all", source)
        self._fits("all_to_all", source, out, count * self.group.ranks)
        self._symmetric("all_to_all", "out", out)
        self._launch(kernels.all_to_all_kernel, count, source, out)

    def reduce_scatter(self, source: Array, out: Array) -> None:
        """Let `out` be the sum of the parts with this rank's number of every rank's `source`, which is symmetric."""
        count = self._part("reduce_scatter", source)
        self._fits("reduce_scatter", source, out, count)
        self._symmetric("reduce_scatter", "source", source)
        self._launch(
            kernels.reduce_scatter_kernel, count, source, out, SUM=self._sum("reduce_scatter", source)
        )

    def all_reduce(self, source: Array, out: Array | None = None, *, algorithm: str = "two_shot") -> None:
        """Let `out`, by default `source` itself, be the sum of every rank's `source`, which is symmetric.

        | algorithm | each rank reads, and writes to others | `out` |
        |---|---|---|
        | ``one_shot`` | everything of every rank; nothing | other memory than `source` |
        | ``two_shot`` | one part of every rank; that part to every rank | symmetric |
        | ``ring`` | its own memory; everything twice, to one neighbour | `source` |
        """
        if algorithm not in ALGORITHMS:
            raise InvalidArgument(f"all_reduce: algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}")
        out = source if out is None else out
        count, kind = self._count("all_reduce", source), self._sum("all_reduce", source)
        self._fits("all_reduce", source, out, count)
        self._symmetric("all_reduce", "source", source)
        same = out.data_ptr() == source.data_ptr()
        if algorithm == "ring":
            if not same:
                raise InvalidArgument("all_reduce: the ring works in place; leave out `out`")
            self._ring(source, count, kind)
        elif algorithm == "one_shot":
            if same and count:
                raise InvalidArgument(
                    "all_reduce: one_shot needs an `out` that is not `source`; or use two_shot"
                )
            self._launch(kernels.one_shot_kernel, count, source, out, SUM=kind)
        else:
            self._symmetric("all_reduce", "out", out)
            self._launch(kernels.two_shot_kernel, count, source, out, SUM=kind)

    def _ring(self, x: Array, count: int, kind: Any) -> None:
        ranks = self.group.ranks
        needed = max(1, ranks - 1) * -(-count // ranks)
        name = element_name(x)
        if self._received is None or self._received.numel() < needed or element_name(self._received) != name:
            self._received = self.group.zeros(needed, name)
        arguments = (self.group.context, self._ring_words, self._ring_signals, x, self._received, count)
        kernels.ring_kernel[self._grid(-(-count // ranks))](
            *arguments, RANKS=ranks, SUM=kind, BLOCK=self._block
        )

    def _launch(self, kernel: Any, count: int, source: Array, out: Array, **constants: Any) -> None:
        arguments = (self.group.context, self._words, source, out, count)
        kernel[self._grid(count)](*arguments, RANKS=self.group.ranks, BLOCK=self._block, **constants)

    def _grid(self, count: int) -> tuple[int]:
        return (max(1, min(self._programs, -(-count // self._block))),)

    # --- arguments -----------------------------------------------------------------------------------------

    def _count(self, call: str, array: Array) -> int:
        if not array.is_contiguous():
            raise InvalidArgument(f"{call}: an array of shape {tuple(array.shape)} is not contiguous")
        return math.prod(array.shape)

    def _part(self, call: str, source: Array) -> int:
        count, ranks = self._count(call, source), self.group.ranks
        if count % ranks:
            raise InvalidArgument(
                f"{call}: {count} elements are not a part of equal size for each of {ranks} ranks"
            )
        return count // ranks

    def _fits(self, call: str, source: Array, out: Array, count: int) -> None:
        if self._count(call, out) != count or element_name(out) != element_name(source):
            raise InvalidArgument(
                f"{call}: out has {math.prod(out.shape)} elements of {element_name(out)}, but {count} of "
                f"{element_name(source)} are needed"
            )

    def _symmetric(self, call: str, name: str, array: Array) -> None:
        if not math.prod(array.shape):
            return  # torch gives it no address
        begin = array.data_ptr()
        try:
            for address in (begin, begin + math.prod(array.shape) * array.element_size()):
                self.group.device.peer_address(self.group.rank, address)
        except InvalidPointer as error:
            raise InvalidPointer(
                f"{call}: {name} is not in the group's symmetric memory; allocate it with Group.zeros or Group.tensor"
            ) from error

    def _sum(self, call: str, array: Array) -> Any:
        if (found := _SUMS.get(element_name(array))) is None:
            raise InvalidArgument(f"{call}: {element_name(array)} cannot be summed; {', '.join(_SUMS)} can")
        return found


def element_name(array: Array) -> str:
    """The plain name of an array's element type."""
    return str(array.dtype).rpartition(".")[2]

"""One row measured: checked against its oracle, then timed in turn with its peers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from triton_porting_kit.kernels import peers
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace, Operand, TorchPlace

from .figures import Figure, measured, ratio
from .probe import Roof
from .rows import COMPILED, EAGER, Row, bar_of
from .timing import alternate

GROUP = "kernels"
OURS = "ours"


class WrongResult(Exception):
    """A kernel's result is beyond its tolerance, so its time says nothing."""


def has_torch() -> bool:
    """Whether torch can be imported."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def make_place(device: Any) -> TorchPlace | DevicePlace:
    """Where arrays live: in torch tensors if the device computes in the host's memory, else in its own."""
    from triton.runtime import driver

    host = driver.active.get_current_target().backend == "cpu"
    return TorchPlace() if host and has_torch() else DevicePlace(device)


def checked_call(
    case: Case, place: Any, arrays: list[Any] | None = None
) -> tuple[Callable[[], Any], list[Any], tuple[Operand, ...]]:
    """A call of the kernel whose first result was right, the arrays that it reads, and what is in them.

    `arrays` are those of another call on the same operands, where there was one. Raises `WrongResult` where a result
    is beyond its tolerance.
    """
    operands = case.operands()
    if arrays is None:
        arrays = [place.put(operand) for operand in operands]
    outputs = case.launch(arrays)
    for deviation in case.compare([place.get(output) for output in outputs], operands):
        if not deviation.ok:
            raise WrongResult(
                f"{case.id}: {deviation.name} is off by {deviation.max_error:.3e}, "
                f"{deviation.severity:.2f} times what is allowed"
            )

    def ours() -> None:
        case.launch(arrays, outputs[0])
        place.synchronize()

    return ours, arrays, operands


def measure(row: Row, place: Any, roof: Roof, threads: int, runs: int, quick: bool) -> list[Figure]:
    """The figures of a row. Raises `WrongResult`."""
    ours, arrays, operands = checked_call(row.case, place)
    calls: dict[str, Callable[[], Any]] = {OURS: ours}
    if isinstance(place, TorchPlace):
        calls |= _torch_calls(row, arrays, quick)
    elif (numpy_call := peers.numpy_call(row.case, operands)) is not None:
        calls["NumPy"] = numpy_call
    samples = alternate(calls, runs)
    mine = samples[OURS]
    figures = [
        measured(found, GROUP, row.name, column, threads, less=True) for column, found in samples.items()
    ]
    figures += [
        ratio(
            found,
            mine,
            GROUP,
            row.name,
            f"{peer} / ours",
            threads,
            bar_of(row.bars[peer], threads) if peer in row.bars else None,
        )
        for peer, found in samples.items()
        if peer != OURS
    ]
    # What other programs on the machine disturb least.
    figures += [
        measured(
            min(found.seconds) / min(mine.seconds),
            GROUP,
            row.name,
            f"{peer} / ours, fastest runs",
            threads,
            unit="x",
            less=False,
        )
        for peer, found in samples.items()
        if peer != OURS
    ]
    least = roof.seconds(row.moved, row.flops, row.dtype)
    if least is not None:
        limit = "arithmetic" if row.flops and least > row.moved / roof.bandwidth(row.moved) else "bandwidth"
        figures.append(
            measured(
                least / mine.median,
                GROUP,
                row.name,
                "of the roof",
                threads,
                unit="x",
                less=False,
                note=limit,
            )
        )
    return figures


def _torch_calls(row: Row, arrays: list[Any], quick: bool) -> dict[str, Callable[[], Any]]:
    """The peers, on the same arrays; each writes into what its first call returned, where torch lets it."""
    import torch

    from triton_porting_kit.kernels.torch_peers import TORCH_PEERS

    peer = TORCH_PEERS[row.case.kernel]
    call = functools.partial(peer, *arrays, **row.case.options)
    with torch.no_grad():
        out = call(out=None)
    found: dict[str, Callable[[], Any]] = {EAGER: _without_gradients(call, out)}
    if COMPILED in row.bars and not quick:
        compiled = functools.partial(torch.compile(peer, dynamic=False), *arrays, **row.case.options)
        found[COMPILED] = _without_gradients(compiled, out)
    return found


def _without_gradients(call: Callable[..., Any], out: Any) -> Callable[[], Any]:
    import torch

    def timed() -> None:
        with torch.no_grad():
            call(out=out)

    return timed

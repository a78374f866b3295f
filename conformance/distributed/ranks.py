"""What ranks do in tests of groups and of the language: kernels, and functions that a worker calls with its group."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
import triton
import triton.language as tl

import triton_porting_kit.language as tpl
from triton_porting_kit.distributed import Group
from triton_porting_kit.driver import DEFAULT_STREAM
from triton_porting_kit.errors import DeviceLost, GroupError, PortingKitError, RankLost

# --- kernels ---------------------------------------------------------------------------------------------


@triton.jit
def shift_kernel(group, x, y, arrived, n, call, BLOCK: tl.constexpr):
    """Put x to the right neighbour's y, wait for the left one's, and add this rank."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    right = (tpl.rank(group) + 1) % tpl.num_ranks(group)
    signal = arrived + tl.program_id(0)
    tpl.put_signal(group, y + offsets, tl.load(x + offsets, mask=mask), right, signal, mask=mask)
    tpl.wait(group, signal, call)
    tl.store(x + offsets, tl.load(y + offsets, mask=mask) + 10 * tpl.rank(group), mask=mask)


@triton.jit
def collect_kernel(group, x, out, read, BLOCK: tl.constexpr):
    """Get every rank's x, tell it that it was read, and overwrite the own one when all have read it."""
    offsets = tl.arange(0, BLOCK)
    tpl.barrier_all(group)
    for peer in range(tpl.num_ranks(group)):
        tl.store(out + peer * BLOCK + offsets, tpl.get_signal(group, x + offsets, peer, read))
    tpl.wait(group, read, tpl.num_ranks(group))
    tl.store(x + offsets, tl.full([BLOCK], -1.0, tl.float32))


@triton.jit
def wait_kernel(group, signal, least, out):
    tl.store(out, tpl.wait(group, signal, least).to(tl.int32) + 1)


@triton.jit
def barriers_kernel(group, seen, mistakes, rounds):
    """Count rounds on every rank, and look after each barrier whether all have counted."""
    me, ranks = tpl.rank(group), tpl.num_ranks(group)
    wrong = 0
    for step in range(1, rounds + 1):
        for peer in range(ranks):
            tpl.put(group, seen + me, step, peer)
        tpl.barrier_all(group)
        for peer in range(ranks):
            wrong += (tl.load(seen + peer) != step).to(tl.int32)
        tpl.barrier_all(group)
    tl.store(mistakes, wrong)


@triton.jit
def wrapping_kernel(group, signal, amount, out):
    """Notify this rank with a number near the largest one, and wait beyond it."""
    me = tpl.rank(group)
    tpl.notify(group, signal, me, amount)
    tl.store(out, tpl.wait(group, signal, amount).to(tl.int32))
    tpl.notify(group, signal, me, 5)
    tl.store(out + 1, tpl.wait(group, signal, amount + 5).to(tl.int32))


# --- what ranks do ---------------------------------------------------------------------------------------


def shift(group: Group, n: int, calls: int) -> list[float]:
    x, y = group.zeros(n, "float32"), group.zeros(n, "float32")
    blocks = triton.cdiv(n, 256)
    arrived = group.zeros(blocks, "int32")
    x.copy_(np.full(n, group.rank + 1, np.float32))
    group.barrier()
    for call in range(1, calls + 1):
        shift_kernel[(blocks,)](group.context, x, y, arrived, n, call, BLOCK=256)
        group.device.synchronize(DEFAULT_STREAM)
        group.barrier()
    values = {float(each) for each in x.numpy()}
    return sorted(values)


def collect(group: Group) -> list[list[float]]:
    x, out, read = (
        group.zeros(128, "float32"),
        group.zeros((group.ranks, 128), "float32"),
        group.zeros(1, "int64"),
    )
    x.copy_(np.arange(128, dtype=np.float32) + 1000 * group.rank)
    collect_kernel[(1,)](group.context, x, out, read, BLOCK=128)
    return [[float(row[0]), float(row[-1])] for row in out.numpy()] + [[float(x.numpy()[0])]]


def barriers(group: Group, rounds: int) -> int:
    seen, mistakes = group.zeros(group.ranks, "int32"), group.zeros(1, "int32")
    barriers_kernel[(1,)](group.context, seen, mistakes, rounds)
    return int(mistakes.numpy()[0])


def wrap(group: Group) -> list[int]:
    signal, out = group.zeros(1, "int32"), group.zeros(2, "int32")
    wrapping_kernel[(1,)](group.context, signal, 2**31 - 3, out)
    return [int(each) for each in out.numpy()]


def describe(group: Group) -> dict[str, Any]:
    import torch

    tensor = group.tensor((3, 5), torch.bfloat16)
    words = group.context.numpy()
    return {
        "rank": group.rank,
        "ranks": group.ranks,
        "words": [int(word) for word in words[:2]],
        "to itself": int(words[8 + group.rank]),
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype),
        "exchanged": [each.decode() for each in group.exchange(f"from {group.rank}".encode())],
    }


def disagree(group: Group, what: str) -> str:
    try:
        if what == "size":
            group.zeros(10 + group.rank, "float32")
        elif what == "type":
            group.zeros(10, "float32" if group.rank else "int32")
        else:
            group.zeros(64 << 20, "uint8")
    except PortingKitError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def lose(group: Group, how: str) -> dict[str, Any]:
    """Rank 1 ends, or its chip does; the others wait for it, in a kernel or on the host, and tell what happens."""
    word, out = group.zeros(1, "int32"), group.zeros(1, "int32")
    wait_kernel[(1,)](group.context, word, 0, out)
    group.barrier()
    if group.rank == 1:
        time.sleep(0.5)
        if how == "chip":
            os.kill(group.memory.process, signal.SIGKILL)  # type: ignore[attr-defined]
            group.device.synchronize()  # raises
        os._exit(1)
    errors, begin = [], time.monotonic()
    device = group.device
    for _ in range(2):
        try:
            if how != "host":
                wait_kernel[(1,)](group.context, word, 1, out)
                device.synchronize(DEFAULT_STREAM)
            else:
                group.exchange(b"")
        except (DeviceLost, GroupError) as error:
            errors.append(f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - begin
    try:
        group.check()
    except RankLost as error:
        errors.append(f"rank {error.rank}")
    group.close()
    plain = np.zeros(1, np.int32)
    device.memcpy_dtoh(plain, device.memalloc(4))  # the device works again
    return {"errors": errors, "seconds": seconds}


def starve(group: Group) -> str:
    """Each rank waits for a signal that nobody sends, element r for rank r, to reach 7 + r."""
    signal, out = group.zeros(4, "int32"), group.zeros(1, "int32")
    wait_kernel[(1,)](
        group.context, signal[group.rank :], 0, out
    )  # which may compile for longer than the timeout
    group.device.synchronize(DEFAULT_STREAM)
    # Not a barrier, whose kernel would wait no longer than the timeout for a rank that is late.
    group.exchange(b"")
    try:
        wait_kernel[(1,)](group.context, signal[group.rank :], 7 + group.rank, out)
        group.device.synchronize(DEFAULT_STREAM)
    except DeviceLost as error:
        return str(error)
    return "no error"

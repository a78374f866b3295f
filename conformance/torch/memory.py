"""Checks of the memory of a torch device, through the functions that `torch.cuda` has."""

from __future__ import annotations

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.torch import support
from triton_porting_kit.conformance.torch.surface import Surface

CHECKS = Checks("torch/memory", torch=support.ACCELERATOR)
_BYTES = 1 << 20
_ROUNDS = 50
_HUGE = 1 << 50
"""Bytes that no device has."""


@CHECKS.check(
    "statistics", "memory_allocated counts the bytes of live tensors, and max_memory_allocated their peak."
)
def statistics(context: Context) -> None:
    import torch

    surface = Surface(context)
    surface.synchronize()
    before = surface.memory_allocated()
    surface.reset_peak_memory_stats()
    tensor = torch.empty(_BYTES, dtype=torch.uint8, device=surface.name)
    held = surface.memory_allocated()
    context.expect(held >= before + _BYTES, "an allocation is counted", f"{before} bytes became {held}")
    reserved = surface.memory_reserved()
    context.expect(reserved >= held, "as much is reserved as is allocated", f"{reserved} bytes, of {held}")
    del tensor
    after, peak = surface.memory_allocated(), surface.max_memory_allocated()
    context.expect(after == before, "a freed tensor is not counted", f"{after} bytes, not {before}")
    context.expect(peak >= held, "the peak is kept", f"{peak} bytes, not {held}")


@CHECKS.check("reuse", "Memory of freed tensors is used again.")
def reuse(context: Context) -> None:
    import torch

    surface = Surface(context)
    first = torch.empty(_BYTES, dtype=torch.uint8, device=surface.name)
    del first
    surface.synchronize()
    before = surface.memory_reserved()
    for _ in range(_ROUNDS):
        torch.empty(_BYTES, dtype=torch.uint8, device=surface.name)
    after = surface.memory_reserved()
    context.expect(
        after <= before, f"{_ROUNDS} allocations of one size reserve no more", f"{before} became {after}"
    )


@CHECKS.check("empty-cache", "empty_cache gives unused memory back and leaves live tensors as they are.")
def empty_cache(context: Context) -> None:
    import torch

    surface = Surface(context)
    live = surface.numbers(1000)
    unused = torch.empty(8 * _BYTES, dtype=torch.uint8, device=surface.name)
    del unused
    before = surface.memory_reserved()
    surface.empty_cache()
    after = surface.memory_reserved()
    context.expect(after <= before, "no more is reserved", f"{before} bytes became {after}")
    same = torch.equal(live.cpu(), torch.arange(1000, dtype=torch.float32))
    context.expect(same, "a live tensor keeps its elements", "they changed")


@CHECKS.check(
    "exhaustion", "An allocation that is too large raises an error that names memory; later ones succeed."
)
def exhaustion(context: Context) -> None:
    import torch

    surface = Surface(context)
    live = surface.numbers(1000)
    error = context.refuses(
        "an allocation of 1 PiB",
        lambda: torch.empty(_HUGE, dtype=torch.uint8, device=surface.name),
        RuntimeError,
    )
    context.expect("memory" in str(error).lower(), "the message names memory", str(error)[:500])
    again = (surface.numbers(1000) + live).cpu()
    right = torch.equal(again, 2 * torch.arange(1000, dtype=torch.float32))
    context.expect(right, "later allocations and operators work", "the result is wrong")


@CHECKS.check("views", "Views share the storage of their base: each sees what is written through the other.")
def views(context: Context) -> None:
    import torch

    surface = Surface(context)
    base, same = surface.numbers(60), torch.arange(60, dtype=torch.float32)
    shared = base.view(5, 12)[1:4, ::3]
    start = base.data_ptr() + 12 * 4
    context.expect(shared.data_ptr() == start, "a view begins inside of its base", f"not {start:#x}")
    storage = base.untyped_storage().data_ptr() == shared.untyped_storage().data_ptr()
    context.expect(storage, "both have one storage", "they have two")
    shared.fill_(-1)
    same.view(5, 12)[1:4, ::3].fill_(-1)
    context.expect(
        torch.equal(base.cpu(), same), "the base sees writes through a view", f"{base.cpu().tolist()}"
    )
    base.mul_(2)
    wanted = 2 * same.view(5, 12)[1:4, ::3]
    context.expect(
        torch.equal(shared.cpu(), wanted), "a view sees writes through its base", f"{shared.cpu().tolist()}"
    )


@CHECKS.check("copies", "Copies between host and device keep elements, types and strides.")
def copies(context: Context) -> None:
    import torch

    surface = Surface(context)
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool, torch.bfloat16):
        there = (torch.arange(210) % 2 if dtype is torch.bool else torch.arange(210)).to(dtype).view(5, 6, 7)
        for what, tensor in (
            ("dense", there),
            ("transposed", there.transpose(0, 2)),
            ("sliced", there[1:4, ::2, 3:]),
        ):
            back = tensor.to(surface.name).cpu()
            context.expect(torch.equal(back, tensor), f"a {what} tensor of {dtype} comes back", "it changed")
    later = torch.arange(100_000, dtype=torch.float32).to(surface.name, non_blocking=True)
    surface.synchronize()
    right = torch.equal(later.cpu(), torch.arange(100_000, dtype=torch.float32))
    context.expect(right, "a copy that does not block is done after synchronize", "elements are missing")

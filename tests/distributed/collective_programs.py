"""What ranks do in tests of collectives. torch's gloo computes what they should give, on the same values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from triton_porting_kit.distributed import Collectives, Group
from triton_porting_kit.distributed.collectives import ALGORITHMS
from triton_porting_kit.errors import PortingKitError


@contextmanager
def gloo(group: Group, file: str) -> Iterator[None]:
    """A process group of torch with the same ranks, which meet at a file."""
    store = dist.FileStore(file, group.ranks)
    dist.init_process_group("gloo", store=store, rank=group.rank, world_size=group.ranks)
    try:
        yield
    finally:
        dist.barrier()
        dist.destroy_process_group()


def _values(group: Group, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Small integers in symmetric memory, whose sums every type holds exactly; different on each rank."""
    values = group.tensor(count, dtype)
    generator = torch.Generator().manual_seed(1000 * count + group.rank)
    values.copy_(torch.randint(-8, 9, (count,), generator=generator))
    return values


def _gather(x: torch.Tensor, ranks: int) -> torch.Tensor:
    parts = [torch.empty_like(x) for _ in range(ranks)]
    dist.all_gather(parts, x.clone())
    return torch.cat(parts)


def compare(group: Group, file: str, types: list[str], counts: list[int]) -> list[str]:
    """Which collectives give something else than gloo."""
    ranks, wrong = group.ranks, []
    calls = Collectives(group, programs=2)
    with gloo(group, file):
        for name in types:
            for count in counts:
                dtype = getattr(torch, name)
                x = _values(group, count, dtype)
                found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
                gathered = group.tensor(count * ranks, dtype)
                calls.all_gather(x, gathered)
                found["all_gather"] = gathered, _gather(x, ranks)

                parts = _values(group, count * ranks, dtype)
                everything = _gather(parts, ranks).reshape(ranks, ranks, count)
                out = group.tensor(count * ranks, dtype)
                calls.all_to_all(parts, out)
                found["all_to_all"] = out, everything[:, group.rank].reshape(-1)
                out = torch.full((count,), -1, dtype=dtype)  # not symmetric
                calls.reduce_scatter(parts, out)
                expected = everything[:, group.rank].to(torch.float64).sum(0)
                found["reduce_scatter"] = out, expected.to(dtype)

                total = x.to(torch.float64)
                dist.all_reduce(total)
                for algorithm in ALGORITHMS:
                    y = group.tensor(count, dtype)
                    y.copy_(x)
                    out = torch.full((count,), -1, dtype=dtype) if algorithm == "one_shot" else y
                    for _ in range(2):  # in place, the second adds what the first has given
                        calls.all_reduce(y, out, algorithm=algorithm)
                    factor = 1 if algorithm == "one_shot" else ranks
                    found[algorithm] = out, (total * factor).to(dtype)
                for call, (got, wanted) in found.items():
                    if not torch.equal(got, wanted):
                        wrong.append(f"{call} of {count} {name}: {got[:8]} instead of {wanted[:8]}")
    return wrong


def same_everywhere(group: Group, count: int) -> list[list[float]]:
    """Sums of numbers that are rounded, by each algorithm, and their distance to the exact sum."""
    calls = Collectives(group)
    x = group.tensor(count, torch.float32)
    found = []
    for algorithm in ALGORITHMS:
        exact = torch.zeros(count, dtype=torch.float64)
        for rank in range(group.ranks):
            values = torch.randn(count, generator=torch.Generator().manual_seed(rank))
            exact += values
            if rank == group.rank:
                x.copy_(values)
        out = torch.empty_like(x) if algorithm == "one_shot" else x
        calls.all_reduce(x, out, algorithm=algorithm)
        bits = out.view(torch.int32).to(torch.int64).sum()
        found.append([int(bits), float((out.to(torch.float64) - exact).abs().max())])
    return found


def refuse(group: Group) -> list[str]:
    calls: Any = Collectives(group)
    x, y = group.zeros(9, "float32"), group.zeros(6, "int32")
    plain = torch.zeros(9)
    found = []
    for call in (
        lambda: calls.all_reduce(plain),
        lambda: calls.all_reduce(x, x, algorithm="one_shot"),
        lambda: calls.all_reduce(x, plain, algorithm="ring"),
        lambda: calls.all_reduce(x, plain, algorithm="tree"),
        lambda: calls.all_reduce(x, y),
        lambda: calls.all_to_all(x, x),
        lambda: calls.all_gather(plain, torch.zeros(18)),
        lambda: calls.all_reduce(group.zeros(4, "bool")),
    ):
        try:
            call()
        except PortingKitError as error:
            found.append(f"{type(error).__name__}: {error}")
        else:
            found.append("no error")
    return found

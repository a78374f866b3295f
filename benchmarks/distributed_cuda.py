"""The kit's collectives on NVIDIA GPUs of one machine, by Triton's own CUDA backend and torch's symmetric memory.

    PYTHONPATH=src torchrun --nproc-per-node 2 -m benchmarks.distributed_cuda

Results are compared with float64 and with NCCL's; the command fails on a mismatch. Times are printed beside NCCL's. It
needs torch with CUDA and Triton, but not the kit's native parts. NVLink multicast stays off. A kernel that does not end
within `--seconds` is told to stop waiting, and counts as a mismatch.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
os.environ["NCCL_NVLS_ENABLE"] = "0"

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory
import triton.language as tl

from triton_porting_kit import language
from triton_porting_kit.distributed import kernels, overlapped_kernels

HEAP_BYTES = 512 << 20
PROGRAMS = 64
"""Programs of a launch. All of them run at the same time on a GPU with as many multiprocessors."""
BLOCK = 4096
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
COUNTS = (1, 1000, 100_003)
LARGE = 16 << 20
"""Elements of all ranks together."""
LIMIT_SECONDS = 480
"""When the whole command ends, whatever happens."""
_ALIGNMENT = 256


class Heap:
    """A part of symmetric memory on each rank, and the words that kernels get as `group`."""

    def __init__(self) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self._memory = symmetric_memory.empty(HEAP_BYTES, dtype=torch.uint8, device=self.device)
        world: Any = dist.group.WORLD
        self._handle = symmetric_memory.rendezvous(self._memory, world)
        self._memory.zero_()
        torch.cuda.synchronize()
        dist.barrier()
        self._used = 0
        places = self._handle.buffer_ptrs
        words = [0] * (language.DISTANCES.value + self.ranks)
        words[language.RANK.value], words[language.RANKS.value] = self.rank, self.ranks
        words[language.BARRIER.value] = self.take(2, torch.int64).data_ptr()
        for peer in range(self.ranks):
            words[language.DISTANCES.value + peer] = places[peer] - places[self.rank]
        self.context = torch.tensor(words, dtype=torch.int64, device=self.device)
        self._side = torch.cuda.Stream()
        self._stop = torch.zeros(1, dtype=torch.int64).pin_memory()
        self._tell_to_stop()  # loads now what it needs: loading may wait for running kernels

    def take(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """The next `count` elements of the heap, zero at first; the same place on all ranks that take the same."""
        size = count * dtype.itemsize
        begin, self._used = self._used, self._used + -(-size // _ALIGNMENT) * _ALIGNMENT
        if self._used > HEAP_BYTES:
            raise MemoryError(
                f"{self._used} bytes of symmetric memory are needed, and there are {HEAP_BYTES}"
            )
        return self._memory[begin : begin + size].view(dtype)

    def rewind(self, used: int) -> None:
        """Give back what was taken when this much was used."""
        self._used = used

    @property
    def used(self) -> int:
        return self._used

    def finish(self, seconds: float) -> bool:
        """Wait for this rank's kernels; whether they ended in time. Those that did not are told to stop waiting."""
        done = torch.cuda.Event()
        done.record()
        if _reached(done, seconds):
            return True
        self._stop.fill_(1)
        self._tell_to_stop()
        if not _reached(done, seconds):
            print(f"rank {self.rank}: a kernel does not end", flush=True)
            os._exit(1)
        return False

    def _tell_to_stop(self) -> None:
        word = language.STOP.value
        with torch.cuda.stream(self._side):
            self.context[word : word + 1].copy_(self._stop, non_blocking=True)
        self._side.synchronize()


def _reached(event: torch.cuda.Event, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > end:
            return False
        time.sleep(0.0001)
    return True


def _values(rank: int, count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """What a rank contributes, which every rank can compute: whole numbers, so that sums of all types are exact."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(-8, 9, (count,), generator=generator).to(dtype)


class Suite:
    """Calls the kernels, compares and prints."""

    def __init__(self, heap: Heap, seconds: float) -> None:
        self.heap, self.seconds = heap, seconds
        self.failures = 0
        self._words = heap.take(2 * PROGRAMS, torch.int64)
        self._ring_words = heap.take(2 * PROGRAMS, torch.int64)
        self._ring_signals = heap.take(PROGRAMS, torch.int64)
        self._matmul_words = heap.take(2 * PROGRAMS, torch.int64)
        self._matmul_signals = heap.take(heap.ranks * PROGRAMS, torch.int64)
        self._scatter_words = heap.take(2 * PROGRAMS, torch.int64)
        self._scatter_signals = heap.take(heap.ranks * PROGRAMS, torch.int64)
        self._start = heap.used

    def launch(self, kernel: Any, count: int, source: torch.Tensor, out: torch.Tensor, **more: Any) -> None:
        grid = (max(1, min(PROGRAMS, -(-count // BLOCK))),)
        constants = {"RANKS": self.heap.ranks, "BLOCK": BLOCK, "num_warps": 8} | more
        kernel[grid](self.heap.context, self._words, source, out, count, **constants)

    def ring(self, x: torch.Tensor, received: torch.Tensor, total: Any) -> None:
        part = -(-x.numel() // self.heap.ranks)
        kernels.ring_kernel[(max(1, min(PROGRAMS, -(-part // BLOCK))),)](
            self.heap.context, self._ring_words, self._ring_signals, x, received, x.numel(),
            RANKS=self.heap.ranks, SUM=total, BLOCK=BLOCK, num_warps=8,
        )  # fmt: skip

    def all_gather_matmul(
        self, a: torch.Tensor, gathered: torch.Tensor, b: torch.Tensor, out: torch.Tensor
    ) -> None:
        (m, k), n = a.shape, b.shape[1]
        overlapped_kernels.all_gather_matmul_kernel[(min(PROGRAMS, -(-m // TILE["BLOCK_M"])),)](
            self.heap.context, self._matmul_words, self._matmul_signals, a, gathered, b, out, m, n, k,
            RANKS=self.heap.ranks, **TILE,
        )  # fmt: skip

    def matmul_reduce_scatter(
        self, a: torch.Tensor, b: torch.Tensor, partial: torch.Tensor, out: torch.Tensor
    ) -> None:
        m, n = out.shape
        overlapped_kernels.matmul_reduce_scatter_kernel[(min(PROGRAMS, -(-m // TILE["BLOCK_M"])),)](
            self.heap.context, self._scatter_words, self._scatter_signals, a, b, partial, out, m, n,
            a.shape[1], RANKS=self.heap.ranks, **TILE,
        )  # fmt: skip

    def expect(
        self, name: str, found: torch.Tensor, exact: torch.Tensor, by_nccl: torch.Tensor, tolerance: float
    ) -> None:
        """Print how far `found` is from float64 and from NCCL's, as a part of the largest exact value."""
        if not self.heap.finish(self.seconds):
            print(f"rank {self.heap.rank}: {name}: MISMATCH: stopped after {self.seconds:g} s", flush=True)
            os._exit(1)  # torchrun ends the other ranks
        scale = max(1.0, float(exact.abs().max()))
        here = found.cpu().double()
        error = float((here - exact).abs().max()) / scale
        other = float((here - by_nccl.cpu().double()).abs().max()) / scale
        right = error <= tolerance and other <= 2 * tolerance
        self.failures += not right
        verdict = "right" if right else "MISMATCH"
        print(f"rank {self.heap.rank}: {name}: {verdict} (float64 {error:.1e}, NCCL {other:.1e})", flush=True)

    def collectives(self, count: int, dtype: torch.dtype, seed: int) -> None:
        """Every collective once, with `count` elements of each rank, or of each pair of ranks."""
        heap, ranks, device = self.heap, self.heap.ranks, self.heap.device
        total = tl.int32 if dtype == torch.int32 else tl.float32
        heap.rewind(self._start)
        name = f"{str(dtype).removeprefix('torch.')}, {count}"
        whole = [_values(rank, ranks * count, dtype, seed) for rank in range(ranks)]
        mine = heap.take(ranks * count, dtype)
        out = heap.take(ranks * count, dtype)
        local, nccl = torch.empty_like(mine), torch.empty_like(mine)
        contributed = whole[heap.rank].to(device)
        exact = torch.stack([each.double() for each in whole])
        part = slice(heap.rank * count, (heap.rank + 1) * count)

        mine.copy_(contributed)
        self.launch(kernels.all_gather_kernel, count, mine[:count].clone(), out)
        dist.all_gather_into_tensor(nccl, contributed[:count].contiguous())
        self.expect(f"all_gather ({name})", out, exact[:, :count].reshape(-1), nccl, 0.0)

        self.launch(kernels.all_to_all_kernel, count, contributed, out)
        dist.all_to_all_single(nccl, contributed)
        self.expect(f"all_to_all ({name})", out, exact[:, part].reshape(-1), nccl, 0.0)

        self.launch(kernels.reduce_scatter_kernel, count, mine, local[:count], SUM=total)
        dist.reduce_scatter_tensor(nccl[:count], contributed)
        self.expect(f"reduce_scatter ({name})", local[:count], exact[:, part].sum(0), nccl[:count], 0.0)

        nccl.copy_(contributed)
        dist.all_reduce(nccl)
        self.launch(kernels.one_shot_kernel, ranks * count, mine, local, SUM=total)
        self.expect(f"all_reduce one_shot ({name})", local, exact.sum(0), nccl, 0.0)
        self.launch(kernels.two_shot_kernel, ranks * count, mine, out, SUM=total)
        self.expect(f"all_reduce two_shot ({name})", out, exact.sum(0), nccl, 0.0)
        received = heap.take(max(1, ranks - 1) * count, dtype)
        self.ring(mine, received, total)
        self.expect(f"all_reduce ring ({name})", mine, exact.sum(0), nccl, 0.0)

    def products(self, m: int, k: int, n: int, dtype: torch.dtype) -> None:
        """all_gather_matmul and matmul_reduce_scatter once; every rank's a is m by k, or ranks * m by k."""
        heap, ranks, device = self.heap, self.heap.ranks, self.heap.device
        heap.rewind(self._start)
        name = f"{str(dtype).removeprefix('torch.')}, {m} by {k} by {n}"
        generator = torch.Generator().manual_seed(m + k + n)
        every = [torch.randn(ranks * m, k, generator=generator).to(dtype) for _ in range(ranks)]
        weights = [torch.randn(k, n, generator=generator).to(dtype) for _ in range(ranks)]
        tolerance = 1e-5 if dtype == torch.float32 else 1e-2
        a, b = every[heap.rank].to(device), weights[heap.rank].to(device)

        out = torch.zeros(ranks * m, n, dtype=dtype, device=device)
        own = a[:m].contiguous()
        self.all_gather_matmul(own, heap.take(ranks * m * k, dtype), b, out)
        gathered = torch.empty(ranks * m, k, dtype=dtype, device=device)
        dist.all_gather_into_tensor(gathered, own)
        exact = torch.cat([each[:m] for each in every]).double() @ weights[heap.rank].double()
        self.expect(f"all_gather_matmul ({name})", out, exact, gathered @ b, tolerance)

        partial = heap.take(ranks * m * n, torch.float32)
        scattered = torch.zeros(m, n, dtype=dtype, device=device)
        self.matmul_reduce_scatter(a, b, partial, scattered)
        nccl = torch.empty(m, n, dtype=torch.float32, device=device)
        dist.reduce_scatter_tensor(nccl, (a @ b).float())
        pairs = zip(every, weights, strict=True)
        products = torch.stack([left.double() @ right.double() for left, right in pairs]).sum(0)
        mine = slice(heap.rank * m, (heap.rank + 1) * m)
        self.expect(f"matmul_reduce_scatter ({name})", scattered, products[mine], nccl, tolerance)

    # --- times -----------------------------------------------------------------------------------------------

    def times(self) -> None:
        """Print milliseconds of the fastest of 20 calls, beside NCCL's."""
        heap, ranks = self.heap, self.heap.ranks
        heap.rewind(self._start)
        for count in (256 << 10, LARGE):
            x, received = heap.take(count, torch.float32), heap.take(count, torch.float32)
            plain = torch.zeros(count, device=heap.device)
            calls: dict[str, Callable[[], Any]] = {
                "NCCL": partial(dist.all_reduce, plain),
                "one_shot": partial(self.launch, kernels.one_shot_kernel, count, x, plain, SUM=tl.float32),
                "two_shot": partial(self.launch, kernels.two_shot_kernel, count, x, x, SUM=tl.float32),
                "ring": partial(self.ring, x, received, tl.float32),
            }
            self._report(f"all_reduce of {4 * count >> 20} MiB", calls)
        m, k, n = 2048, 4096, 4096
        heap.rewind(self._start)
        shared = heap.take(ranks * m * k, torch.bfloat16)
        a = torch.zeros(m, k, dtype=torch.bfloat16, device=heap.device)
        b = torch.zeros(k, n, dtype=torch.bfloat16, device=heap.device)
        out = torch.zeros(ranks * m, n, dtype=torch.bfloat16, device=heap.device)
        gathered = torch.empty(ranks * m, k, dtype=torch.bfloat16, device=heap.device)

        def one_after_the_other() -> None:
            dist.all_gather_into_tensor(gathered, a)
            torch.matmul(gathered, b, out=out)

        self._report(
            f"all-gather + matmul, {m} by {k} by {n}, bfloat16",
            {
                "NCCL, then cuBLAS": one_after_the_other,
                "all_gather_matmul": lambda: self.all_gather_matmul(a, shared, b, out),
            },
        )

    def _report(self, what: str, calls: dict[str, Callable[[], Any]]) -> None:
        cells = []
        for name, call in calls.items():
            best = min(self._milliseconds(call) for _ in range(20))
            cells.append(f"{name} {best:.3f} ms")
        print(f"rank {self.heap.rank}: {what}: {', '.join(cells)}", flush=True)

    def _milliseconds(self, call: Callable[[], Any]) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        if not self.heap.finish(self.seconds):
            print(f"rank {self.heap.rank}: MISMATCH: stopped after {self.seconds:g} s", flush=True)
            os._exit(1)
        return float(begin.elapsed_time(end))


def _cases(ranks: int) -> Iterator[tuple[int, torch.dtype]]:
    for count in COUNTS:
        for dtype in (torch.float32, torch.bfloat16, torch.int32):
            yield count, dtype
    yield LARGE // ranks, torch.float32


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a kernel may take")
    parser.add_argument("--no-times", action="store_true", help="compare only")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    heap = Heap()
    print(
        f"rank {heap.rank} of {heap.ranks}: {torch.cuda.get_device_name()}, torch {torch.__version__}",
        flush=True,
    )
    suite = Suite(heap, options.seconds)
    for seed, (count, dtype) in enumerate(_cases(heap.ranks)):
        suite.collectives(count, dtype, seed)
    for m, k, n, dtype in ((100, 70, 90, torch.float32), (512, 1024, 768, torch.bfloat16)):
        suite.products(m, k, n, dtype)
    if not options.no_times:
        suite.times()
    failures = torch.tensor([suite.failures], device=heap.device)
    dist.all_reduce(failures)
    if heap.rank == 0:
        print(f"{int(failures)} mismatches on all ranks", flush=True)
    dist.destroy_process_group()
    return 1 if int(failures) else 0


if __name__ == "__main__":
    sys.exit(main())

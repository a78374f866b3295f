"""The roof: what the machine's memory and its arithmetic reach at best, measured by loops made for nothing else.

Bandwidth by a triad, a[i] = b[i] + s * c[i], over as many bytes as the kernel in question touches, so that what fits
in a cache is held to the cache's bandwidth. Peaks by independent chains of multiply-adds that live in registers.
The loops are LLVM IR, so that no other compiler decides what they become.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.toolchain import llvm

CHAINS = 12
"""Multiply-adds in flight: more than a core has latency times units for, and with their operands in 16 registers."""
PROBE_RUNS = 12
PROBE_SECONDS = 5e-3
MOST_SHARES = 16
ALIGNMENT = 64


@dataclass(frozen=True)
class Peak:
    """One multiply-add instruction: its operand types in LLVM's terms, the call, and the operations that it does.

    `load` is how an operand is read, with TYPE for its type, and `store` how the accumulator VALUE is written.
    """

    accumulator: str
    operand: str
    call: str
    operations: int
    declaration: str = ""
    chains: int = CHAINS
    load: str = "load volatile TYPE, ptr %data"
    store: str = "store volatile TYPE VALUE, ptr %data"


def _peaks() -> dict[str, Peak]:
    """The best multiply-add of each type that this machine has, as far as they are written down here."""
    target = CpuTarget.host()
    features, lanes = target.features, _lanes()
    vector = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    found = {
        "float32": Peak(
            vector,
            vector,
            f"call {vector} {fma}({vector} %x, {vector} %y, {vector} ACC)",
            2 * lanes,
            f"declare {vector} {fma}({vector}, {vector}, {vector})",
        )
    }

    def assembly(instruction: str, element: str, operations: int) -> Peak:
        accumulator, operand = f"<16 x {element}>", "<16 x i32>"
        text = f'call {accumulator} asm "{instruction} $2, $1, $0", "=v,v,v,0"'
        return Peak(
            accumulator,
            operand,
            f"{text}({operand} %x, {operand} %y, {accumulator} ACC)",
            operations,
        )

    if "amx-bf16" in features:
        found["bfloat16"] = _tile_peak("tdpbf16ps", 2)
    elif target.multiplies_bf16_pairs:
        found["bfloat16"] = assembly("vdpbf16ps", "float", 64)
    if "amx-int8" in features:
        found["int8"] = _tile_peak("tdpbssd", 4)
    elif "avx512vnni" in features:
        found["int8"] = assembly("vpdpbusd", "i32", 128)
    elif target.multiplies_word_pairs and lanes == 8:
        sums, step = "<8 x i32>", r"vpmaddwd $2, $1, %ymm15\0Avpaddd %ymm15, $0, $0"
        call = f'call {sums} asm "{step}", "=v,v,v,0,~{{ymm15}}"({sums} %x, {sums} %y, {sums} ACC)'
        found["int8"] = Peak(sums, sums, call, 2 * 2 * 8)
    return found


def _tile_peak(instruction: str, count: int) -> Peak:
    """16 rows by 16 columns of sums, each of 16 units of `count` elements along K, in AMX's eight tile registers."""
    tile, name = "x86_amx", f"@llvm.x86.{instruction}.internal"
    return Peak(
        tile,
        tile,
        f"call {tile} {name}(i16 16, i16 64, i16 64, {tile} ACC, {tile} %x, {tile} %y)",
        2 * 16 * 16 * 16 * count,
        f"declare {tile} {name}(i16, i16, i16, {tile}, {tile}, {tile})\n"
        f"declare {tile} @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)\n"
        f"declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, {tile})",
        chains=4,  # of 16 cycles each: more than the latency of 52
        load="call TYPE @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %data, i64 64)",
        store="call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %data, i64 64, TYPE VALUE)",
    )


def _lanes() -> int:
    """float32 elements of the widest vector."""
    features = CpuTarget.host().features
    return 16 if "avx512f" in features else 8 if "avx2" in features else 4


def peak_ir(peak: Peak) -> str:
    """A function ``peak(ptr data, i64 count)`` that does `count` rounds of a multiply-add in every chain."""
    chains = range(peak.chains)
    acc, operand = peak.accumulator, peak.load.replace("TYPE", peak.operand)
    phis = "\n".join(f"  %a{i} = phi {acc} [%z, %entry], [%n{i}, %loop]" for i in chains)
    steps = "\n".join(f"  %n{i} = {peak.call.replace('ACC', f'%a{i}')}" for i in chains)
    stores = "\n".join("  " + peak.store.replace("TYPE", acc).replace("VALUE", f"%n{i}") for i in chains)
    return f"""
{peak.declaration}
define void @peak(ptr %data, i64 %count) {{
entry:
  %x = {operand}
  %y = {operand}
  %z = {peak.load.replace("TYPE", acc)}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}
"""


def triad_ir(nontemporal: bool) -> str:
    """A function ``triad(ptr a, ptr b, ptr c, i64 n, i64 times)`` over n float32, a multiple of four vectors."""
    lanes, unroll = _lanes(), 4
    vector = f"<{lanes} x float>"
    mark = ", !nontemporal !0" if nontemporal else ""
    body = []
    for u in range(unroll):
        body.append(f"  %o{u} = add i64 %i, {u * lanes}")
        body += [f"  %{p}{u} = getelementptr float, ptr %{p}, i64 %o{u}" for p in "abc"]
        body += [f"  %v{p}{u} = load {vector}, ptr %{p}{u}, align {ALIGNMENT}" for p in "bc"]
        body.append(
            f"  %r{u} = call {vector} @llvm.fma.v{lanes}f32({vector} %s, {vector} %vc{u}, {vector} %vb{u})"
        )
        body.append(f"  store {vector} %r{u}, ptr %a{u}, align {ALIGNMENT}{mark}")
    text = "\n".join(body)
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define void @triad(ptr %a, ptr %b, ptr %c, i64 %n, i64 %times) {{
entry:
  %one = load volatile float, ptr %b
  %s0 = insertelement {vector} zeroinitializer, float %one, i32 0
  %s = shufflevector {vector} %s0, {vector} zeroinitializer, <{lanes} x i32> zeroinitializer
  br label %again
again:
  %t = phi i64 [0, %entry], [%t1, %ended]
  br label %loop
loop:
  %i = phi i64 [0, %again], [%next, %loop]
{text}
  %next = add i64 %i, {lanes * unroll}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %ended
ended:
  %t1 = add i64 %t, 1
  %back = icmp ult i64 %t1, %times
  br i1 %back, label %again, label %done
done:
  ret void
}}
!0 = !{{i32 1}}
"""


def _compile(ir: str, name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    machine = llvm.target_machine(cpu="", features=CpuTarget.host().feature_string)
    module = llvm.parse(ir, llvm.host_triple())
    linked = llvm.LinkedObject(llvm.emit_object(module, machine), [name])
    function = ctypes.CFUNCTYPE(None, *arguments)(linked.addresses[name])
    function.keep = linked  # type: ignore[attr-defined]
    return function


@functools.cache
def _triad(nontemporal: bool) -> Callable[..., Any]:
    return _compile(triad_ir(nontemporal), "triad", (ctypes.c_void_p,) * 3 + (ctypes.c_int64,) * 2)


def together(calls: list[Callable[[], Any]]) -> float:
    """Seconds that calls take which begin at the same time, each in a thread of its own."""
    if len(calls) == 1:
        start = time.perf_counter()
        calls[0]()
        return time.perf_counter() - start
    barrier = threading.Barrier(len(calls))
    spans: list[tuple[float, float]] = []

    def body(call: Callable[[], Any]) -> None:
        barrier.wait()
        start = time.perf_counter()
        call()
        spans.append((start, time.perf_counter()))

    workers = [threading.Thread(target=body, args=(call,)) for call in calls]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _best(calls: list[Callable[[int], Any]]) -> float:
    """The least seconds of one repetition, over `PROBE_RUNS` runs of about `PROBE_SECONDS`.

    With many threads they last longer: waking all of them from Python takes some of that time.
    """
    least = PROBE_SECONDS * max(1, min(len(calls), MOST_SHARES) / 2)

    def run(times: int) -> float:
        return together([functools.partial(call, times) for call in calls]) / times

    times = 1
    while (taken := run(times) * times) < least:
        times = max(times + 1, min(times * 10, int(times * 1.2 * least / max(taken, 1e-7))))
    return min(run(times) for _ in range(PROBE_RUNS))


class Roof:
    """What the machine reaches with a number of threads; each figure is measured when it is first asked for."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._bandwidths: dict[int, float] = {}
        self._peaks: dict[str, float | None] = {}

    def bandwidth(self, size: int) -> float:
        """Bytes per second of the best triad whose three arrays have `size` bytes together.

        Counted are the bytes that the program names, not those that a cache fetches before it overwrites them.
        """
        step = 4 * _lanes() * self.threads
        count = max(step, size // 12 // step * step)
        if count not in self._bandwidths:
            self._bandwidths[count] = self._measure_bandwidth(count)
        return self._bandwidths[count]

    def _measure_bandwidth(self, count: int) -> float:
        arrays = [_aligned(count) for _ in range(3)]
        share = count // self.threads
        best = 0.0
        for nontemporal in (False, True):
            function = _triad(nontemporal)

            def call(times: int, thread: int, function: Callable[..., Any] = function) -> None:
                function(*(array[thread * share :].ctypes.data for array in arrays), share, times)

            seconds = _best([functools.partial(_turned, call, thread) for thread in range(self.threads)])
            best = max(best, 12 * count / seconds)
        return best

    def peak(self, dtype: str) -> float | None:
        """Operations per second in multiply-adds of a type; None where the machine has no such instruction.

        Types that are widened before they are multiplied have float32's.
        """
        known = _peaks()
        if dtype not in known and dtype in ("float16", "bfloat16"):
            dtype = "float32"
        if dtype not in self._peaks:
            self._peaks[dtype] = self._measure_peak(known.get(dtype))
        return self._peaks[dtype]

    def _measure_peak(self, peak: Peak | None) -> float | None:
        if peak is None:
            return None
        try:
            function = _compile(peak_ir(peak), "peak", (ctypes.c_void_p, ctypes.c_int64))
        except (PortingKitError, RuntimeError):
            return None
        data = [_aligned(256) for _ in range(self.threads)]  # a tile register
        seconds = _best([functools.partial(_rounds, function, array) for array in data])
        return 1000 * peak.chains * peak.operations * self.threads / seconds

    def seconds(self, moved: int, flops: int, dtype: str) -> float | None:
        """The least time that this much work can take; None where the peak is not known."""
        least = moved / self.bandwidth(moved)
        if not flops:
            return least
        peak = self.peak(dtype)
        return None if peak is None else max(least, flops / peak)


def _rounds(function: Callable[..., Any], data: Any, times: int) -> None:
    function(data.ctypes.data, 1000 * times)


def _turned(call: Callable[..., Any], thread: int, times: int) -> None:
    call(times, thread)


def _aligned(count: int) -> Any:
    """Ones in float32 whose first element is aligned."""
    whole = np.ones(count + ALIGNMENT, np.float32)
    skip = -whole.ctypes.data % ALIGNMENT // 4
    return whole[skip : skip + count]

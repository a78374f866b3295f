"""Ranks by the model: every access of the language's functions, the collectives and the overlapped kernels is ordered.

``python -m triton_porting_kit.conformance.distributed.modelled NAME`` tries one program and prints what it finds as
JSON: the model takes over launches of its process, which is therefore its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.distributed import collectives, litmus, overlapped, ranks

RANKS = 3
"""More than two, so that a neighbour is not the only other rank."""
SEEDS = 2
"""Schedules of each program."""
SECONDS = 120.0


@dataclass(frozen=True)
class Program:
    """A function of a group, its arguments, and the result that every rank should give."""

    requirement: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Callable[[int], Any]
    """Of each rank."""
    ranks: int = RANKS


def _same(value: Any) -> Callable[[int], Any]:
    return lambda _: value


def _rows(_: int) -> Any:
    return [*([1000.0 * peer, 1000.0 * peer + 127] for peer in range(RANKS)), [-1.0]]


def _shifted(rank: int) -> list[float]:
    return [(rank - 2) % RANKS + 1 + 10.0 * rank + 10.0 * ((rank - 1) % RANKS)]


PROGRAMS: dict[str, Program] = {
    "put": Program("Puts to a neighbour are ordered by their signal.", ranks.shift, (300, 2), _shifted),
    "get": Program("Memory is used again only after it was read.", ranks.collect, (), _rows),
    "barrier": Program("A barrier orders all ranks.", ranks.barriers, (2,), _same(0)),
    "passing": Program("Order is passed on through other ranks.", litmus.passing, (3,), _same(0)),
    "reuse": Program("A get with a signal orders a later store.", litmus.reuse, (3,), _same(0), 2),
    "fence": Program("Fences order relaxed operations.", litmus.flags, (2,), _same(0), 2),
    **{
        call: Program(
            f"Every access of {call.replace('_', '-')} is ordered.",
            collectives.compare,
            ("float32", (7, 37), 8, (call,)),
            _same([]),
        )
        for call in collectives.CALLS
    },
    "products": Program(
        "Products that overlap with transfers are ordered.", overlapped.products, (19, 17, 18, 16), _same([])
    ),
    "experts": Program(
        "Tokens that go to experts and back are ordered.", overlapped.experts, (11, 19, 2, 2, 16), _same([])
    ),
    "attention": Program(
        "Keys and values that go around are ordered.", overlapped.attention, (2, 19, 16, True, 16), _same([])
    ),
}
"""By name: the checks ``distributed/model/NAME``."""
THREADS = "threads"
"""The name of the program that is only compiled: see `unprotected`."""


def requirement(name: str) -> str:
    """What has to hold for a program, in one sentence."""
    if name == THREADS:
        return "Barriers of a program's threads surround the operations that order memory."
    return PROGRAMS[name].requirement


def try_program(name: str) -> str:
    """What is wrong with a program; empty if nothing is."""
    from triton_porting_kit.distributed.model import check_ranks

    if name == THREADS:
        return unprotected()
    program = PROGRAMS[name]
    count = program.ranks
    expected = [program.expected(rank) for rank in range(count)]
    for seed in range(SEEDS):
        try:
            found = check_ranks(program.function, count, *program.arguments, seed=seed)
        except Exception as error:
            return f"{type(error).__name__} with seed {seed}: {error}"
        if found != expected:
            return f"with seed {seed}: {found} instead of {expected}"
    return ""


_ACCESS = re.compile(r"tt\.(?:load|store) .*tensor<")
_ORDER = re.compile(r"tt\.atomic_rmw \w+, (acquire|release|acq_rel), sys")


def unprotected() -> str:
    """Where a tile is accessed between an atomic operation that orders it and the barrier of the program's threads.

    On devices whose programs are several threads, one of them executes the atomic operation, and orders its own
    accesses and those that a barrier has put before or behind it.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    wrong = []
    for kernel in (litmus.passing_kernel, litmus.flags_kernel, litmus.reuse_kernel):
        signature = dict.fromkeys(kernel.arg_names, "i32")
        signature |= dict.fromkeys(("x", "signal", "flag", "mistakes"), "*i32") | {"group": "*i64"}
        signature = {name: "constexpr" if name == "BLOCK" else signature[name] for name in kernel.arg_names}
        source = ASTSource(kernel, signature, constexprs={(kernel.arg_names.index("BLOCK"),): 64})
        target = triton.runtime.driver.active.get_current_target()
        assert isinstance(target, GPUTarget)
        lines = triton.compile(source, target=target).asm["ttir"].splitlines()
        for number, line in enumerate(lines):
            if (found := _ORDER.search(line)) is None:
                continue
            before = next((x for x in lines[:number][::-1] if "barrier" in x or _ACCESS.search(x)), "")
            after = next((x for x in lines[number + 1 :] if "barrier" in x or _ACCESS.search(x)), "")
            if found[1] != "acquire" and _ACCESS.search(before):
                wrong.append(f"{kernel.__name__}: no barrier between {before.strip()} and {line.strip()}")
            if found[1] != "release" and _ACCESS.search(after):
                wrong.append(f"{kernel.__name__}: no barrier between {line.strip()} and {after.strip()}")
    return "\n".join(wrong)


def in_process(name: str) -> str:
    """`try_program` in a process of its own, on the CPU backend, which has the interpreter's stage."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, name],
        env=os.environ | {"TRITON_DEFAULT_BACKEND": "cpu"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        return f"the process ended with {done.returncode}: {done.stderr[-2000:]}"
    found: str = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(try_program(sys.argv[1])))

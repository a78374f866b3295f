"""Runs random programs in Triton's interpreter: ``TRITON_INTERPRET=1 python interpret_programs.py COUNT``.

Prints what differs from the oracle, then how many programs agree; the exit status is 1 if any differs.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from triton_porting_kit.conformance.language.interpreter import HostMemory
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.stress.generator import FAMILIES, generate
from triton_porting_kit.conformance.stress.launching import Launch, arguments, judge
from triton_porting_kit.conformance.stress.program import BETWEEN, Fetch, Let, Loop, Program, Put, uses, walk
from triton_porting_kit.conformance.stress.typing import types_of
from triton_porting_kit.toolchain import compat

BOUNDS_MAY_BE_ARGUMENTS = compat.release() >= (3, 7)
"""Triton 3.6 makes arrays of one element of them, of which NumPy makes no integers."""


def takes(program: Program) -> bool:
    """Whether the interpreter can be trusted with a program."""
    types = types_of(program)
    read = {value for statement in walk(program.body) for value in uses(statement)}
    for statement in walk(program.body):
        match statement:
            case Loop():  # makes Python's integers of counters
                simple = statement.style in ("range", "stepped")
                if statement.style == BETWEEN and types[statement.index].kind_name == "i32":
                    simple = BOUNDS_MAY_BE_ARGUMENTS and _is_only_added(program, statement.index)
                elif statement.index in read:
                    simple = False
                if not simple:
                    return False
            case Let(op="~") if types[statement.outs[0]].kind_name.startswith("u"):  # fails before Triton 3.9
                return False
            case Fetch() | Put():  # masks of tiles are tiles
                if statement.mask is not None and types[statement.mask].rank < types[statement.pointer].rank:
                    return False
    return not any(t.kind_name.endswith("bf16") for t in types.values())


def _is_only_added(program: Program, counter: int) -> bool:
    """Whether a counter is added to tiles, perhaps times a literal: as an integer of Python's it does the same."""
    for statement in walk(program.body):
        if counter in uses(statement):
            if not isinstance(statement, Let) or statement.op not in ("+", "-", "literal"):
                return False
            if statement.op == "literal" and not _is_only_added(program, statement.outs[0]):
                return False
    return True


def main(count: int) -> int:
    agree = differ = 0
    seeds = (begin + number for begin in FAMILIES.values() for number in range(count))
    for program in filter(takes, map(generate, seeds)):
        launch = Launch.of(program)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given, outputs = arguments(launch, HostMemory)  # type: ignore[arg-type]
            make_kernel(launch.source)[launch.grid](*given, num_warps=launch.warps)
        wrong = [f"{what}: {found.message}" for what, found in judge(launch, outputs) if found.differ]
        agree, differ = agree + (not wrong), differ + bool(wrong)
        for line in wrong:
            print(f"seed {program.seed}: {line}")
    print(agree)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

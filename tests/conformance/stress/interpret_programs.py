"""Runs random programs in Triton's interpreter: ``TRITON_INTERPRET=1 python interpret_programs.py COUNT``.

Prints what differs from the oracle, then how many programs agree; the exit status is 1 if any differs.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from triton_porting_kit.conformance.language.interpreter import HostMemory
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch, arguments, judge
from triton_porting_kit.conformance.stress.program import Loop, Program, walk
from triton_porting_kit.conformance.stress.typing import types_of


def takes(program: Program) -> bool:
    """Whether the interpreter can be trusted with a program."""
    types = {t.kind_name for t in types_of(program).values()}
    return "bf16" not in types and not any(isinstance(s, Loop) for s in walk(program.body))


def main(count: int) -> int:
    agree = differ = 0
    for program in filter(takes, map(generate, range(count))):
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

"""Launches kernels of the kit on the active backend: ``python suite_program.py PATTERN... [--small]``.

A pattern is one of the conformance suite's names, or ``demo`` for the kernels of `triton_porting_kit.kernels`.
"""

from __future__ import annotations

import fnmatch
import os
import sys

from triton_porting_kit.conformance.catalogue import checks
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.sessions import open_session
from triton_porting_kit.conformance.trial import try_check


def run_checks(session: Session, patterns: list[str], elements: int) -> None:
    for check in checks(("language", "kernels")):
        if check.elements <= elements and any(fnmatch.fnmatch(check.name, pattern) for pattern in patterns):
            try_check(check, session)


def run_demo(session: Session) -> None:
    import triton

    from triton_porting_kit.cli.demo import DEMO_CASES
    from triton_porting_kit.kernels import cases
    from triton_porting_kit.kernels.places import DevicePlace

    place = DevicePlace(triton.runtime.driver.active.device)
    more = (
        cases.dropout_case(10_000, "float32"),
        cases.gelu_residual_case(10_000, "float16"),
        cases.cumulative_sum_case(33, 200, "float32"),
        cases.sort_rows_case(33, 128, "float32"),
        cases.attention_case(2, 128, 64, "float16"),
        cases.attention_backward_case(2, 128, 64, "float32"),
    )
    for case in (*DEMO_CASES, *more):
        case.launch([place.put(operand) for operand in case.operands()])


def main(patterns: list[str]) -> None:
    elements = 1 << 40
    if "--small" in patterns:
        patterns.remove("--small")
        elements = 1 << 14
    session = open_session(
        os.environ.get("TRITON_DEFAULT_BACKEND", "cpu"),
        Profile(),
    )
    run_checks(session, patterns, elements)
    if "demo" in patterns:
        run_demo(session)


if __name__ == "__main__":
    main(sys.argv[1:])

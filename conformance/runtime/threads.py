"""Calls a function from several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from triton_porting_kit.conformance.context import Context

THREADS = 6


def parsed_beside_others(launch: Callable[[], Any]) -> None:
    """Launch a kernel that is not compiled yet while other threads do the same.

    CPython 3.11 has a single recursion counter of ``ast.parse`` for all threads, and occasionally raises a false
    `SystemError`. This is not a failure of the backend, so the launch is repeated.
    """
    while True:
        try:
            launch()
        except SystemError as error:
            if "AST constructor recursion depth" in str(error):
                continue
            raise
        return


def in_threads(context: Context, what: str, work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Call `work` with 0, 1, … in `count` threads that start together, and return the results."""
    results: list[Any] = [None] * count
    errors: list[str] = []
    barrier = threading.Barrier(count)

    def run(k: int) -> None:
        try:
            barrier.wait()
            results[k] = work(k)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    context.expect(
        not errors, f"{what} in {count} threads raises nothing", "; ".join(errors)[:1000], stage="launched"
    )
    return results

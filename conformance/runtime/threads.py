"""Doing the same from several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from triton_porting_kit.conformance.context import Context

THREADS = 6


def in_threads(context: Context, what: str, work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Call `work` with 0, 1, … in that many threads that start together; what it returned. What it raises fails."""
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

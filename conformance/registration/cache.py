"""Triton's cache on disk: compiled kernels are found again, and give the same results."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.registration.support import (
    SUM,
    anew,
    environment,
    in_fresh_process,
    memory_of,
    own_cache,
)
from triton_porting_kit.toolchain import compat

CHECKS = Checks("registration/cache", elements=128)


def _run(context: Context, **options: Any) -> tuple[Any, list[bool]]:
    """Launch a kernel that is not in memory. Returns the compiled kernel, and whether the cache had it."""
    values = context.random.integers(-1000, 1000, 100).astype(np.int32)
    given, out = context.array(values, "i32"), context.empty((1,), "i32")
    with compat.watched_compilations() as seen:
        compiled = anew(SUM)[(1,)](given, out, 100, BLOCK=128, **options)
    context.compare("the sum", identical(context.read(out), values.sum(dtype=np.int32)[None]))
    return compiled, [hit for _, hit in seen]


@CHECKS.check(
    "found-again", "A kernel that was compiled before is found in the cache, and gives the right result."
)
def _found_again(context: Context) -> None:
    with own_cache(context):
        first, missed = _run(context)
        second, found = _run(context)
        context.expect(missed == [False], "the first is compiled", str(missed))
        context.expect(found == [True], "the second is not", str(found))
        context.expect(first.hash == second.hash, "they have one hash", f"{first.hash}, {second.hash}")


@CHECKS.check("same-artefacts", "The cache returns the artefacts and metadata that were compiled.")
def _same_artefacts(context: Context) -> None:
    with own_cache(context):
        first, _ = _run(context)
        second, _ = _run(context)
        context.expect(
            set(first.asm) == set(second.asm), "there are the same artefacts", f"{set(second.asm)}"
        )
        wrong = [name for name in first.asm if first.asm[name] != second.asm[name]]
        context.expect(not wrong, "each is the same", str(wrong))
        context.expect(first.metadata == second.metadata, "metadata are the same", f"{second.metadata}"[:500])


@CHECKS.check(
    "fresh-process",
    "A kernel that was compiled in one process is found by the next, and gives the right result there.",
)
def _fresh_process(context: Context) -> None:
    with own_cache(context):
        _, missed = _run(context)
        there = in_fresh_process("launch", context.session.backend, memory_of(context.session), SUM, 100)
        context.expect(missed == [False], "it is compiled here", str(missed))
        context.expect(there["hits"] == [True], "it is found there", str(there["hits"]))
        context.expect(there["result"] == 4950, "the result there is right", str(there["result"]))


@CHECKS.check(
    "from-fresh-process", "A kernel that another process compiled is found here, and gives the right result."
)
def _from_fresh_process(context: Context) -> None:
    with own_cache(context):
        there = in_fresh_process("launch", context.session.backend, memory_of(context.session), SUM, 100)
        compiled, found = _run(context)
        context.expect(there["hits"] == [False], "it is compiled there", str(there["hits"]))
        context.expect(found == [True], "it is found here", str(found))
        context.expect(
            compiled.hash == there["hash"], "they have one hash", f"{compiled.hash}, {there['hash']}"
        )


@CHECKS.check("options-apart", "The cache holds kernels with different options separately.")
def _options_apart(context: Context) -> None:
    with own_cache(context):
        hits = [_run(context, num_warps=count)[1] for count in (1, 2, 1, 2)]
        context.expect(hits == [[False], [False], [True], [True]], "each is compiled once", str(hits))


@CHECKS.check("files", "The cache has a file for every artefact of a kernel.")
def _files(context: Context) -> None:
    with own_cache(context) as folder:
        compiled, _ = _run(context)
        found = {path.suffix[1:] for path in Path(folder).rglob("*") if path.is_file()}
        lacking = [name for name in compiled.asm if name not in found]
        context.expect(not lacking, "each artefact has one", f"none for {lacking}; there are {sorted(found)}")
        context.expect("json" in found, "metadata have one", str(sorted(found)))


@CHECKS.check("emptied", "A kernel whose cache was emptied is compiled again.")
def _emptied(context: Context) -> None:
    with own_cache(context) as folder:
        _run(context)
        for path in Path(folder).iterdir():
            shutil.rmtree(path)
        _, hits = _run(context)
        context.expect(hits == [False], "it is compiled", str(hits))


@CHECKS.check("always-compile", "If Triton is set to always compile, the cache is not used.")
def _always(context: Context) -> None:
    with own_cache(context):
        _run(context)
        with environment(TRITON_ALWAYS_COMPILE="1"):
            _, hits = _run(context)
        context.expect(hits == [False], "it is compiled", str(hits))


@CHECKS.check("two-caches", "Two caches are independent.")
def _two_caches(context: Context) -> None:
    for _ in range(2):
        with own_cache(context):
            _, hits = _run(context)
            context.expect(hits == [False], "it is compiled in each", str(hits))


@CHECKS.check(
    "store-binary-only",
    "If only binaries are stored, kernels are found again and give the right result.",
    kit_device=True,
)
def _binary_only(context: Context) -> None:
    with own_cache(context), environment(TRITON_STORE_BINARY_ONLY="1"):
        _, missed = _run(context)
        _, found = _run(context)
        context.expect((missed, found) == ([False], [True]), "compiled, then found", f"{missed}, {found}")

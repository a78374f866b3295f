"""Hashes and cache keys: equal for equal inputs, different for anything that changes the compiled code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.registration.support import (
    SUM,
    backend_of,
    facts_of_fresh_process,
    in_fresh_process,
    own_cache,
    target_of,
    warm,
)
from triton_porting_kit.conformance.runtime.arguments import Interior
from triton_porting_kit.toolchain import compat

CHECKS = Checks("registration/hashes", compiles=True)


# --- of the backend ----------------------------------------------------------------------------------------


@CHECKS.check("backend", "The backend's hash is a string, and two instances have the same hash.")
def _backend(context: Context) -> None:
    first, second = backend_of(context).hash(), backend_of(context).hash()
    context.expect(isinstance(first, str) and bool(first), "it is a string", repr(first))
    context.expect(first == second, "two objects have one hash", f"{first!r} and {second!r}")


def _in_other_process(context: Context, what: str) -> None:
    backend = backend_of(context)
    here = {
        "backend": backend.hash(),
        "options": backend.parse_options({}).hash(),
        "target": str(target_of(context)),
    }
    there = facts_of_fresh_process(context.session.backend, True)
    context.expect(
        there.get(what) == here[what], f"the {what} is the same", f"{there.get(what)!r}, not {here[what]!r}"
    )


for _what, _words in {
    "backend": "The backend's hash is",
    "options": "The hash of default options is",
    "target": "The target is",
}.items():
    CHECKS.add(
        f"{_what}-in-fresh-process",
        f"{_words} the same in another process; otherwise kernels would be compiled again in each.",
        partial(_in_other_process, what=_what),
        compiles=False,
    )


@CHECKS.check(
    "target",
    "A target of another architecture gives another hash, of the backend or its options, or is refused.",
)
def _target(context: Context) -> None:
    target = target_of(context)
    others = (80, 90, 100) if isinstance(target.arch, int) else (f"{target.arch}x", "other")
    here = backend_of(context)
    own = here.hash(), here.parse_options({}).hash()
    for arch in others:
        if arch == target.arch:
            continue
        try:
            other = backend_of(context, dataclasses.replace(target, arch=arch))
            found = other.hash(), other.parse_options({}).hash()
        except Exception as error:
            context.expect(True, f"architecture {arch!r} is refused: {type(error).__name__}")
        else:
            context.expect(found != own, f"architecture {arch!r} has other hashes", str(found))


# --- of options --------------------------------------------------------------------------------------------


@CHECKS.check("options", "The hash of options is a string, and equal options have one hash.")
def _options(context: Context) -> None:
    given = {"num_warps": 2, "num_stages": 2, "debug": True}
    first = backend_of(context).parse_options(dict(given)).hash()
    second = backend_of(context).parse_options(dict(reversed(given.items()))).hash()
    context.expect(isinstance(first, str) and bool(first), "it is a string", repr(first))
    context.expect(
        first == second, "the order in which they are given does not matter", f"{first!r} and {second!r}"
    )


_CHANGES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "num_warps": ({"num_warps": 2}, {"num_warps": 4}),
    "num_stages": ({"num_stages": 1}, {"num_stages": 3}),
    "enable_fp_fusion": ({"enable_fp_fusion": True}, {"enable_fp_fusion": False}),
    "debug": ({"debug": True}, {"debug": False}),
    "sanitize_overflow": ({"sanitize_overflow": True}, {"sanitize_overflow": False}),
}


def _option(context: Context, name: str) -> None:
    backend = backend_of(context)
    first, second = (backend.parse_options(dict(given)) for given in _CHANGES[name])
    context.expect(first.hash() != second.hash(), f"two values of {name} have two hashes", first.hash())


for _name in _CHANGES:
    CHECKS.add(
        f"option-{_name}", f"A different {_name} changes the hash of options.", partial(_option, name=_name)
    )


# --- of compiled kernels -----------------------------------------------------------------------------------

VECTOR = (
    "def vector(X, O, n, BLOCK: tl.constexpr):\n"
    "    i = tl.arange(0, BLOCK)\n    x = tl.load(X + i, mask=i < n)\n    tl.store(O + i, x + x, mask=i < n)\n"
)
Variant = Callable[[Context], Any]
"""Returns a compiled kernel."""


def _with(
    source: str = VECTOR, kind: str = "fp32", n: int = 37, block: int = 64, offset: int = 0, **options: Any
) -> Variant:
    def compile_one(context: Context) -> Any:
        x, out = context.empty((128,), kind), context.empty((128,), kind)
        return warm(source, Interior(x, offset), out, n, BLOCK=block, **options)

    return compile_one


_VARIANTS: dict[str, tuple[str, Variant]] = {
    "constant": ("another constant", _with(block=128)),
    "type": ("a pointer to another type", _with(kind="i32")),
    "narrow-type": ("a pointer to a narrower type", _with(kind="i16")),
    "one": ("the argument 1", _with(n=1)),
    "sixteen": ("an argument that is a multiple of 16", _with(n=48)),
    "width": ("a 64-bit argument", _with(n=1 << 40)),
    "alignment": ("an unaligned pointer", _with(offset=1)),
    "num_warps": ("another num_warps", _with(num_warps=8)),
    "debug": ("debug enabled", _with(debug=True)),
    "fusion": ("fused arithmetic disabled", _with(enable_fp_fusion=False)),
    "source": ("another source", _with(source=VECTOR.replace("x + x", "x * x"))),
    "name": ("another name", _with(source=VECTOR.replace("def vector", "def vector_two"))),
}


def _differs(context: Context, name: str) -> None:
    plain = _with(num_warps=4, debug=False, enable_fp_fusion=True)(context)
    other = _VARIANTS[name][1](context)
    context.expect(plain.hash != other.hash, "the two have different hashes", plain.hash)


for _name, (_what, _variant) in _VARIANTS.items():
    CHECKS.add(
        f"kernel-{_name}",
        f"A kernel compiled with {_what} has another hash: it is not taken from the cache.",
        partial(_differs, name=_name),
        elements=128,
    )


@CHECKS.check(
    "kernel-same", "A kernel for the same types, constants and options has the same hash.", elements=128
)
def _same(context: Context) -> None:
    first, second = _with()(context), _with(n=38)(context)
    context.expect(
        first.hash == second.hash, "two that differ in a value only have one", f"{first.hash}, {second.hash}"
    )


@CHECKS.check("kernel-environment", "A setting that changes what is compiled changes the hash.", elements=128)
def _environment(context: Context) -> None:
    plain = _with()(context)
    other = _with(sanitize_overflow=False)(context)
    context.expect(plain.hash != other.hash, "the two have different hashes", plain.hash)


# --- what is compiled again, and what is not -----------------------------------------------------------------


def _launches(context: Context, calls: list[tuple[dict[str, Any], bool]]) -> None:
    """Launch one kernel with changed arguments, and check for each launch whether the kernel is compiled."""
    with own_cache(context):
        kernel = triton.jit(make_kernel(VECTOR).fn)
        for changes, compiled in calls:
            given = {"kind": "fp32", "n": 37, "offset": 0, "BLOCK": 64, **changes}
            kind, count, offset = given.pop("kind"), given.pop("n"), given.pop("offset")
            values = np.arange(128).astype("int32" if kind == "i32" else "float32")
            x, out = context.array(values, kind), context.array(np.zeros_like(values), kind)
            with compat.watched_compilations() as seen:
                kernel[(1,)](Interior(x, offset), out, count, **given)
            found = [hit for _, hit in seen] == [False]
            context.expect(
                found == compiled,
                f"{changes or 'no change'}: {'compiled' if compiled else 'not compiled'}",
                str(seen),
            )
            if context.runs:
                expected = np.zeros_like(values)
                reach = min(count, given["BLOCK"])
                expected[:reach] = 2 * values[offset : offset + reach]
                context.compare("the result", identical(context.read(out), expected))


_AGAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "constant": ("a constant", {"BLOCK": 32}),
    "type": ("the type of a pointer", {"kind": "i32"}),
    "one": ("a number to 1", {"n": 1}),
    "sixteen": ("a number to a multiple of 16", {"n": 16}),
    "alignment": ("the alignment of a pointer", {"offset": 3}),
    "option": ("an option", {"num_warps": 2}),
}

for _name, (_what, _change) in _AGAIN.items():
    CHECKS.add(
        f"again-{_name}",
        f"Changing {_what} causes one more compilation, and the first compiled kernel is kept.",
        partial(_launches, calls=[({}, True), (_change, True), ({}, False), (_change, False)]),
        elements=64,
        compiles=False,
    )

CHECKS.add(
    "again-not",
    "Values that change without changing the specialisation cause no compilation.",
    partial(
        _launches,
        calls=[({}, True), ({"n": 38}, False), ({"n": 39}, False), ({"offset": 4}, False), ({}, False)],
    ),
    elements=64,
    compiles=False,
)


# --- stale results -----------------------------------------------------------------------------------------


def _results(context: Context, kernels: list[Any]) -> list[int]:
    """The values that kernels with one output store."""
    found = []
    with own_cache(context):
        for kernel in kernels:
            out = context.array(np.zeros(1, np.int32), "i32")
            kernel[(1,)](out)
            found.append(int(context.read(out)[0]))
    return found


@CHECKS.check(
    "stale-source", "A kernel that was changed under the same name runs its current source.", compiles=False
)
def _stale_source(context: Context) -> None:
    kernels = [make_kernel(f"def same_name(O):\n    tl.store(O, {value})\n") for value in (5, 6, 7)]
    found = _results(context, kernels)
    context.expect(found == [5, 6, 7], "three of one name store 5, 6 and 7", str(found))


@CHECKS.check("stale-function", "A kernel calls the current versions of other functions.", compiles=False)
def _stale_function(context: Context) -> None:
    helpers = [make_kernel(f"def helper(x):\n    return x + {value}\n") for value in (5, 6)]
    kernels = [
        make_kernel("def caller(O):\n    tl.store(O, helper(100))\n", helper=helper) for helper in helpers
    ]
    found = _results(context, kernels)
    context.expect(found == [105, 106], "with two functions of one name it stores 105 and 106", str(found))


@CHECKS.check("stale-global", "A kernel uses the current values of global constants.", compiles=False)
def _stale_global(context: Context) -> None:
    constants = [tl.constexpr(value) for value in (5, 6)]
    kernels = [
        make_kernel("def reader(O):\n    tl.store(O, OUTSIDE)\n", OUTSIDE=constant) for constant in constants
    ]
    found = _results(context, kernels)
    context.expect(found == [5, 6], "with two constants of one name it stores 5 and 6", str(found))


@CHECKS.check(
    "fresh-process",
    "A kernel that is compiled in another process has the same hash there.",
    compiles=False,
    elements=128,
)
def _fresh_process(context: Context) -> None:
    from triton_porting_kit.conformance.registration.support import memory_of

    x, out = context.empty((100,), "i32"), context.empty((1,), "i32")
    here = warm(SUM, x, out, 100, BLOCK=128)
    with own_cache(context):
        there = in_fresh_process(
            "launch", context.session.backend, memory_of(context.session), SUM, 100, PYTHONHASHSEED="4712"
        )
    context.expect(there["hash"] == here.hash, "the hashes are equal", f"{there['hash']} and {here.hash}")
    context.expect(there["result"] == 4950, "it gives the right result there", str(there["result"]))

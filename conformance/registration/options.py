"""Compile options: all that Triton reads have defaults, and given values are kept or refused."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.registration.support import SUM, anew, backend_of

CHECKS = Checks("registration/options", compiles=True)

_READ: dict[str, tuple[type, ...]] = {
    "num_warps": (int,),
    "num_ctas": (int,),
    "num_stages": (int,),
    "enable_fp_fusion": (bool,),
    "launch_cooperative_grid": (bool,),
    "extern_libs": (tuple, dict, list),
    "debug": (bool,),
    "sanitize_overflow": (bool,),
    "arch": (str, int),
    "supported_fp8_dtypes": (tuple, list),
    "deprecated_fp8_dot_operand_dtypes": (tuple, list),
    "default_dot_input_precision": (str,),
    "allowed_dot_input_precisions": (tuple, list),
    "max_num_imprecise_acc_default": (int,),
    "backend_name": (str,),
}
"""The options that Triton's front end and launch path read, and their allowed types."""


def _default(context: Context, name: str) -> None:
    value = getattr(backend_of(context).parse_options({}), name)
    expected = " or ".join(kind.__name__ for kind in _READ[name])
    context.expect(isinstance(value, _READ[name]), f"{name} is a {expected}", repr(value))


for _name in _READ:
    CHECKS.add(
        f"default-{_name}",
        f"Options have a default for {_name}, which Triton reads.",
        partial(_default, name=_name),
    )


@CHECKS.check("default-precision-allowed", "The default precision of products is one of the allowed ones.")
def _precision(context: Context) -> None:
    options = backend_of(context).parse_options({})
    context.expect(
        options.default_dot_input_precision in options.allowed_dot_input_precisions,
        "it is among the allowed ones",
        f"{options.default_dot_input_precision!r}, {options.allowed_dot_input_precisions!r}",
    )


@CHECKS.check("dictionary", "All options are in `__dict__`, where Triton reads them.")
def _dictionary(context: Context) -> None:
    options = backend_of(context).parse_options({})
    lacking = [name for name in _READ if name not in options.__dict__ and not hasattr(type(options), name)]
    context.expect(not lacking, "__dict__ has what Triton reads", f"it lacks {lacking}")
    context.expect("num_warps" in options.__dict__, "num_warps is a keyword that Triton accepts at a launch")


@CHECKS.check("stored", "Options can be stored in the cache's metadata.")
def _stored(context: Context) -> None:
    text = json.dumps(backend_of(context).parse_options({}).__dict__, default=vars)
    context.expect(json.loads(text)["num_warps"] >= 1, "they become JSON and come back")


@CHECKS.check(
    "arguments-ignored",
    "Keywords that are arguments of a kernel, which Triton also passes, are not options.",
)
def _arguments_ignored(context: Context) -> None:
    backend = backend_of(context)
    plain = backend.parse_options({})
    given = backend.parse_options({"BLOCK_SIZE_OF_MINE": 128, "x_of_mine": object()})
    context.expect(plain.hash() == given.hash(), "they do not change the hash of options")


@CHECKS.check("defaults-fresh", "Options of one compilation do not become defaults of the next.")
def _fresh(context: Context) -> None:
    backend = backend_of(context)
    before = backend.parse_options({}).hash()
    backend.parse_options({"num_warps": 8, "num_stages": 5, "debug": True})
    context.expect(backend.parse_options({}).hash() == before, "the defaults are what they were")


def _kept(context: Context, name: str, value: Any) -> None:
    found = getattr(backend_of(context).parse_options({name: value}), name)
    context.expect(found == value, f"{name} is {value!r}", repr(found))


for _name, _value in (
    *(("num_warps", 1 << k) for k in range(5)),
    *(("num_stages", count) for count in (1, 2, 4)),
    ("num_ctas", 1),
    *((_flag, _on) for _flag in ("enable_fp_fusion", "debug", "sanitize_overflow") for _on in (True, False)),
):
    CHECKS.add(
        f"kept-{_name}-{_value}",
        f"{_name}={_value} is kept.",
        partial(_kept, name=_name, value=_value),
    )


def _nonsense(context: Context, name: str, value: Any) -> None:
    context.refuses(
        f"parse_options with {name}={value!r}",
        lambda: backend_of(context).parse_options({name: value}),
        Exception,
    )


_NONSENSE: tuple[Any, ...] = (0, 3, -4, "four")
for _bad in _NONSENSE:
    CHECKS.add(
        f"refused-num_warps-{_bad}",
        f"num_warps={_bad!r}, which is invalid, is refused.",
        partial(_nonsense, name="num_warps", value=_bad),
    )


# --- at launches -------------------------------------------------------------------------------------------


def _launched(context: Context, **options: Any) -> None:
    values = context.random.integers(-1000, 1000, 100).astype(np.int32)
    given, out = context.array(values, "i32"), context.empty((1,), "i32")
    make_kernel(SUM)[(1,)](given, out, 100, BLOCK=128, **options)
    if context.runs:
        context.compare("the sum", identical(context.read(out), values.sum(dtype=np.int32)[None]))


_LAUNCHES: tuple[dict[str, Any], ...] = (
    *({"num_warps": 1 << k} for k in range(4)),
    *({"num_stages": count} for count in (1, 2, 3)),
    {"num_ctas": 1},
    {"enable_fp_fusion": False},
    {"enable_fp_fusion": True},
    {"debug": True},
    {"debug": False},
    {"sanitize_overflow": False},
    {"num_warps": 2, "num_stages": 2},
)

for _options in _LAUNCHES:
    CHECKS.add(
        f"launch-{'-'.join(f'{name}-{value}' for name, value in _options.items())}",
        f"A kernel that is launched with {', '.join(f'{name}={value}' for name, value in _options.items())} gives the "
        "right result.",
        partial(_launched, **_options),
        elements=128,
    )


@CHECKS.check(
    "launch-unknown-refused",
    "A keyword that is neither an option nor an argument is refused with an error that names it.",
    elements=128,
)
def _unknown(context: Context) -> None:
    given, out = context.empty((100,), "i32"), context.empty((1,), "i32")
    kernel = anew(SUM)
    error = context.refuses(
        "the launch",
        lambda: kernel[(1,)](given, out, 100, BLOCK=128, num_wraps=4),
        (KeyError, TypeError, ValueError),
    )
    context.expect("num_wraps" in str(error), "the message has the name", str(error))


@CHECKS.check("launch-bad-refused", "A launch with an invalid option is refused.", elements=128)
def _bad_launch(context: Context) -> None:
    given, out = context.empty((100,), "i32"), context.empty((1,), "i32")
    kernel = anew(SUM)
    context.refuses("num_warps=3", lambda: kernel[(1,)](given, out, 100, BLOCK=128, num_warps=3), Exception)

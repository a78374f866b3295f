"""Releases of Triton: which is installed, and which the tests run on."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import triton

from triton_porting_kit.errors import ToolchainError

_P = ParamSpec("_P")
_R = TypeVar("_R")

Release = tuple[int, int]
"""Major and minor number."""

TRIED = ((3, 6), (3, 7), (3, 8), (3, 9))
"""The releases of Triton that the tests run on, oldest first."""


class UntriedReleaseWarning(UserWarning):
    """The kit was not tried with the release of Triton that is installed."""


def release() -> Release:
    """Triton's major and minor release number."""
    found = re.match(r"(\d+)\.(\d+)", triton.__version__)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _tried() -> str:
    (first, *_, last) = (".".join(map(str, numbers)) for numbers in TRIED)
    return f"{first} to {last}"


def check_release() -> None:
    """Warn, once, of a release that was not tried. Raises `ToolchainError` for one that is too old."""
    if release() < TRIED[0]:
        oldest = ".".join(map(str, TRIED[0]))
        raise ToolchainError(
            f"Triton {triton.__version__} is too old: the kit needs {oldest} or later; "
            f"run `pip install 'triton>={oldest}'`"
        )
    if release() not in TRIED:
        _warn_of_untried(triton.__version__)


@functools.cache
def _warn_of_untried(version: str) -> None:
    warnings.warn(
        f"the kit was not tried with Triton {version}, only with {_tried()}",
        UntriedReleaseWarning,
        stacklevel=4,
    )


def internal(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Where a release that was not tried has other internals, say so in one sentence."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (ImportError, AttributeError, TypeError) as error:
            if release() in TRIED:
                raise
            raise ToolchainError(
                f"Triton {triton.__version__} is not what {function.__name__}() expects ({error}); "
                f"install a release that was tried, {_tried()}"
            ) from error

    return call

"""Compile options of a kernel, as Triton's front end and launcher read them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat


class KernelOptions:
    """The options of one compilation, as attributes.

    Every option of Triton's own backends has a default here, because the front end reads them (more of them with each
    release). Triton itself rejects unknown options. Raises `OptionError` for invalid counts, and for an instrumentation
    mode that changes results.
    """

    def __init__(self, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        known = {**compat.option_defaults(), **defaults}
        values = known | {name: value for name, value in given.items() if name in known and value is not None}
        if isinstance(values["extern_libs"], Mapping):
            values["extern_libs"] = tuple(values["extern_libs"].items())  # as Triton's own backends have them
        self.__dict__.update(values)
        _check_counts(values)
        _check_instrumentation(str(values.get("instrumentation_mode") or ""))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no compile option {name!r}")

    def hash(self) -> str:
        """A key of all options for Triton's cache."""
        text = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
        return hashlib.sha256(text.encode()).hexdigest()


def _check_counts(values: Mapping[str, Any]) -> None:
    for name, least in (("num_warps", 1), ("num_ctas", 1), ("num_stages", 0)):
        value = values[name]
        if not isinstance(value, int) or value < least:
            raise OptionError(f"{name} is {value!r}", remedy=f"give a whole number of at least {least}")
    if values["num_warps"] & (values["num_warps"] - 1):
        raise OptionError(
            f"num_warps is {values['num_warps']}: it must be a power of 2", remedy="give a power of 2"
        )


def _check_instrumentation(mode: str) -> None:
    """Raise `OptionError` for fpsan, which replaces every float operation by an integer one and so changes results.

    Triton's other sanitizers look for mistakes by a GPU's means. They have no effect here, and may be requested.
    """
    if "fpsan" in mode:
        raise OptionError(
            f"instrumentation_mode is {mode!r}: floats are not computed as integers here",
            remedy="unset TRITON_INSTRUMENTATION_MODE",
        )

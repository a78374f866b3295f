"""The stages of a backend as Triton runs them: files that override one, and what is stored."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

OverrideReader = Callable[[Path, Callable[[], Any]], Any]
"""Gives the artefact of an override file: ``reader(path, by_triton)``, where `by_triton` reads it as Triton would."""

MODULE_STAGES = ("ttir", "ttgir")
"""Stages of Triton's names whose artefact is a module of Triton's, which its own reader makes of a file."""

_expected = threading.local()


def expect_override(stage: str, reader: OverrideReader) -> None:
    """Let `reader` read the file that overrides `stage`, should Triton find one on this thread.

    Triton looks for it (``TRITON_KERNEL_OVERRIDE``, the option ``ir_override``) right after it has run the
    stage. Its own reader knows the stages of its own backends only and gives None for others.
    """
    _expected.override = (stage, reader)
    _install_override_reader()


@functools.cache
def _install_override_reader() -> None:
    from triton.compiler import compiler

    by_triton = compiler.parse

    def parse(full_name: str, ext: str, context: Any) -> Any:
        stage, reader = getattr(_expected, "override", (None, None))
        if reader is None or stage != ext:
            return by_triton(full_name, ext, context)
        return reader(Path(full_name), lambda: by_triton(full_name, ext, context))

    compiler.parse = parse


class _StoredBinary(str):
    """The name of a backend's binary, which also passes for one that Triton stores under any setting.

    With ``TRITON_STORE_BINARY_ONLY`` Triton keeps an artefact only if its name is in ("cubin", "hsaco",
    "json"), and then fails to find the binary of any other backend.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other[:] in (self[:], "hsaco")  # slices are plain strings

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def binary_stage_name(name: str) -> str:
    """The name under which the stage that makes the binary is given to Triton."""
    return _StoredBinary(name)


def inspect_stages(backend: Any, stages: Any, options: Any, language: Any) -> None:
    """Let the user's ``knobs.runtime.add_stages_inspection_hook`` see and change the stages."""
    from triton import knobs

    hook = getattr(knobs.runtime, "add_stages_inspection_hook", None)
    if hook is not None:
        hook(backend, stages, options, language, None)

"""What PoCL, OpenCL on the CPU, has to be told by its environment variables."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator

CACHE = "POCL_CACHE_DIR"
"""PoCL's variable: the folder of its cache, which it reads when the first device is asked for."""

_ONE_BUILD = "POCL_WORK_GROUP_SPECIALIZATION"
"""PoCL's variable: whether the first launch builds a kernel once more, for the size of its work-groups."""


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Ask for the first device in here.

    PoCL gets a cache for this process, which is removed at its end. Temporary files in a cache have the same "random"
    names in every process, so that two which share one overwrite each other's, and PoCL aborts. Nothing is built twice
    for that: Triton's cache keeps the binaries. A value that the user gave stays.
    """
    os.environ.setdefault(_ONE_BUILD, "0")
    if CACHE in os.environ:
        yield
        return
    os.environ[CACHE] = _folder()
    try:
        yield
    finally:
        del os.environ[CACHE]  # processes that this one starts need their own


@functools.cache
def _folder() -> str:
    made = tempfile.mkdtemp(prefix="tpk-pocl-")
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not at the end of one that was forked
        shutil.rmtree(folder, ignore_errors=True)

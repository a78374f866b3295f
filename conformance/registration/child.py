"""Functions that checks call in fresh processes. Each returns JSON types."""

from __future__ import annotations

from typing import Any

import numpy as np


def facts(backend: str) -> dict[str, Any]:
    """What Triton finds in this environment: registered backends, active drivers, and hashes of the backend."""
    from triton.backends import backends
    from triton.runtime import driver

    active = sorted(name for name, found in backends.items() if _is_active(found.driver))
    try:
        chosen = type(driver.active)
        name = f"{chosen.__module__}.{chosen.__qualname__}"
    except Exception as error:
        return {"registered": sorted(backends), "active": active, "driver": "", "error": str(error)}
    return {"registered": sorted(backends), "active": active, "driver": name, "error": "", **_hashes(backend)}


def _is_active(driver: Any) -> bool:
    try:
        return bool(driver.is_active())
    except Exception:
        return False


def _hashes(backend: str) -> dict[str, Any]:
    from triton.backends import backends
    from triton.compiler.compiler import make_backend
    from triton.runtime import driver

    target = driver.active.get_current_target()
    made = make_backend(target)
    if not isinstance(made, backends[backend].compiler):
        return {}
    return {"backend": made.hash(), "options": made.parse_options({}).hash(), "target": str(target)}


def launch(backend: str, memory: str, source: str, length: int) -> dict[str, Any]:
    """Launch a kernel with the parameters of `triton_porting_kit.conformance.registration.support.SUM`."""
    from triton_porting_kit.conformance.arrays import GuardedArray
    from triton_porting_kit.conformance.language.source import make_kernel
    from triton_porting_kit.conformance.profile import Profile
    from triton_porting_kit.conformance.sessions import open_session
    from triton_porting_kit.conformance.types import KINDS
    from triton_porting_kit.toolchain import compat

    session = open_session(backend, Profile(memory=memory))
    given = GuardedArray.of(session.memory, KINDS["i32"], np.arange(length, dtype=np.int32))
    out = GuardedArray(session.memory, KINDS["i32"], (1,))
    with compat.watched_compilations() as seen:
        compiled = make_kernel(source)[(1,)](given, out, length, BLOCK=128)
    session.memory.synchronize()
    return {"hash": compiled.hash, "hits": [hit for _, hit in seen], "result": int(out.read()[0])}

"""What the level needs of torch: the backend's torch device, the operator database, and Inductor's settings."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from triton_porting_kit.errors import PortingKitError

LEVEL = "torch"
COMPILED, ACCELERATOR, EAGER = "compiled", "accelerator", "eager"
"""What a check needs of a torch device: any; one beside the CPU; one whose eager operators the backend provides."""
INSTALL = "pip install 'triton-porting-kit[torch]'"
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_THREADS = 2


class TorchLevelUnavailable(PortingKitError):
    """The level `torch` cannot be judged here."""


def describe(driver: Any) -> dict[str, str]:
    """``version`` of torch, and ``device``, the type of the driver's torch device.

    If the level cannot be judged, ``missing`` is the reason.
    """
    try:
        import torch
    except Exception as error:
        return {"missing": f"torch cannot be imported ({type(error).__name__}: {error}); {INSTALL}"}
    found = {"version": str(torch.__version__)}
    try:
        name = str(torch.device(driver.get_active_torch_device()).type)
        torch.empty(1, device=name)
    except Exception as error:
        wanted = getattr(driver, "torch_device", None)
        return found | {
            "missing": f"the backend has no torch device{f' {wanted!r}' if wanted else ''} in this environment "
            f"({type(error).__name__}: {error}). The package that registers it must be installed under the entry "
            "point group torch.backends, and `import torch` must load it"
        }
    return found | {"device": name}


def verify(description: Mapping[str, Any] | None) -> None:
    """Raise `TorchLevelUnavailable` if the level cannot be judged. `description`: what a worker reported."""
    about = (description or {}).get(LEVEL)
    if about and "missing" in about:
        raise TorchLevelUnavailable(f"the level torch cannot be judged: {about['missing']}")


def applies_to(need: str, needs: Iterable[str], description: Mapping[str, Any]) -> bool:
    """Whether a check is meaningful for a backend, given what a worker reported and the types of the profile."""
    types = description.get("profile", {}).get("capabilities", {}).get("torch_dtypes")
    wanted = [name.removeprefix(f"{LEVEL}:") for name in needs if name.startswith(f"{LEVEL}:")]
    if types is not None and any(name not in types for name in wanted):
        return False
    device = description.get(LEVEL, {}).get("device")
    return device is None or applies(need, device)


def applies(need: str, device: str) -> bool:
    """Whether a check with a need is meaningful on a torch device of this type."""
    if need == EAGER:
        return device not in ("cpu", "cuda")
    return need == COMPILED or device != "cpu"


@cache
def operators() -> dict[str, Any]:
    """The `OpInfo` of each operator of the installed torch, by name. Raises `TorchLevelUnavailable`."""
    try:
        with _without_vendors():
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise TorchLevelUnavailable(
            f"the level torch reads torch's operator database, which cannot be imported ({error}): {INSTALL} installs "
            "torch and expecttest"
        ) from error
    return {name_of(op): op for op in op_db}


def name_of(op: Any) -> str:
    """The name of an `OpInfo` in names of checks."""
    variant = str(op.variant_test_name)
    return f"{op.name}.{variant}" if variant else str(op.name)


@contextmanager
def _without_vendors() -> Iterator[None]:
    """Import torch without vendors' packages in a process that only lists checks: one of them may crash.

    Workers import torch with them, before they need the operators.
    """
    before = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = before


def device_of(context: Any) -> str:
    """The type of the backend's torch device."""
    return str(context.driver.get_active_torch_device().type)


@contextmanager
def inductor(scratch: str) -> Iterator[None]:
    """Settings of torch for one check: no caches, no compile processes, and nothing left behind."""
    import torch
    from torch._inductor import codecache, config

    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    folder = Path(scratch or ".") / "inductor"
    if scratch:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    torch.set_num_threads(_THREADS)
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), config.patch(force_disable_caches=True, compile_threads=1):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch._dynamo.reset()
        codecache.PyCodeCache.cache_clear(purge=True)
        if scratch:
            shutil.rmtree(folder, ignore_errors=True)
            if before is None:
                del os.environ["TORCHINDUCTOR_CACHE_DIR"]
            else:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = before
        gc.collect()
        _keep_modules()


@cache
def _keep_modules() -> None:
    """Keep what the first check has imported out of later collections of garbage.

    It is a million objects, whose visit takes longer than most checks do.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries report what is left when Python ends


def compile_options(device: str, *, stock: bool = False) -> dict[str, Any] | None:
    """The options of `torch.compile`. `stock`: Inductor's own C++ code for the CPU."""
    if stock:
        return {"cpu_backend": "cpp"}
    return {"cpu_backend": "triton"} if device == "cpu" else None

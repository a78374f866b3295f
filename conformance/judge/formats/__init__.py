"""The formats of tasks. `load` detects the format of a file."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.formats import gpu_mode, kernelbench, plain
from triton_porting_kit.conformance.judge.task import Task

_BYTES = 4 << 20


def load(path: Path, seed: int) -> Task:
    """Load a task from a file or a folder with ``reference.py``. `seed` seeds the weights. Raises `TaskError`."""
    if path.is_dir():
        path = path / "reference.py"
    if not path.is_file():
        raise TaskError(f"there is no task {path}: name a Python file, or a folder with reference.py")
    name = path.parent.name if path.name == "reference.py" else path.stem
    module = _module(path)
    try:
        if plain.is_task(module):
            return plain.load(module, name)
        if kernelbench.is_task(module):
            return kernelbench.load(module, name, seed)
        if gpu_mode.is_task(module):
            return gpu_mode.load(module, name, path.parent)
    except TaskError:
        raise
    except Exception as error:
        raise TaskError(f"{path} cannot be set up: {type(error).__name__}: {error}") from error
    raise TaskError(
        f"{path} is not a task: it has neither `inputs` and `reference`, nor `Model` and `get_inputs` (KernelBench), "
        "nor `generate_input` and `ref_kernel` (gpu-mode)"
    )


def _module(path: Path) -> ModuleType:
    """Execute the file. It can import modules from its folder and from those that task.yml names."""
    spec = importlib.util.spec_from_file_location(f"judged_task_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise TaskError(f"{path} is not a Python file (its name should end in .py)")
    module = importlib.util.module_from_spec(spec)
    places = [str(path.parent.resolve()), *map(str, gpu_mode.folders(path.parent))]
    before, modules = list(sys.path), set(sys.modules)
    sys.path[:0] = places
    try:
        with _written_for_gpus(path):
            spec.loader.exec_module(module)
    except TaskError:
        raise
    except (Exception, SystemExit) as error:
        raise TaskError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        sys.path[:] = before
        for name in set(sys.modules) - modules:  # another task may have different modules `task` and `utils`
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(tuple(places)):
                del sys.modules[name]
    return module


def _written_for_gpus(path: Path) -> AbstractContextManager[None]:
    """A context in which tasks that import torch may create tensors on ``cuda`` without a GPU."""
    source = untrusted.read_text(path, _BYTES, TaskError, follow=True)
    if "torch" not in source or importlib.util.find_spec("torch") is None:
        return nullcontext()
    from triton_porting_kit.conformance.judge.formats.tensors import on_device

    return on_device("cpu")

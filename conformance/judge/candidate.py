"""Loads and calls a candidate in its process, according to the task's format."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.judge.arrays import Arrays
from triton_porting_kit.conformance.judge.values import Place, unflatten

Entry = Callable[..., Any]


class NoEntry(Exception):
    """The candidate's file does not define the required entry."""


def load(path: Path, entry: str) -> Any:
    """Execute a candidate's file and return its entry. Raises `NoEntry`."""
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    found = getattr(module, entry, None)
    if not callable(found):
        names = (
            ", ".join(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
            or "nothing"
        )
        raise NoEntry(f"the candidate does not define `{entry}`; it defines {names}")
    return found


def prepare(
    setup: Mapping[str, Any], path: Path, arrays: Arrays, weights: Sequence[tuple[Place, memoryview]]
) -> Entry:
    """The callable to time. `setup`: format, entry and further data of the task's format."""
    form, entry = setup["format"], setup["entry"]
    if form == "null":
        return _nothing
    if form == "gpu-mode" and setup.get("types"):
        module = types.ModuleType("task")
        exec(compile(setup["types"], "task.py", "exec"), module.__dict__)
        sys.modules["task"] = module
    found = load(path, entry)
    if form != "kernelbench":
        return found if form == "plain" else _without_gradients(found)
    import torch

    made = []
    for place, raw in weights:
        array = arrays.empty(place)
        arrays.write(array, raw)
        made.append(array)
    from triton_porting_kit.conformance.judge.formats.tensors import seed_torch

    seed_torch(setup["seed"])
    model = found(*unflatten(setup["init"], made))
    if isinstance(model, torch.nn.Module):
        if made:
            model = model.to(made[0].device)
        state = {key: unflatten(item, made) for key, item in setup["state"].items()}
        own = model.state_dict()
        fitting = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape}
        model.load_state_dict(fitting, strict=False)
    return _without_gradients(model)


def _without_gradients(function: Entry) -> Entry:
    import torch

    no_grad = torch.no_grad

    def call(*arguments: Any) -> Any:
        with no_grad():
            return function(*arguments)

    return call


def _nothing(*arguments: Any) -> None:
    """The entry of the control process, which has no candidate."""


def results_of(found: Any) -> list[Any]:
    """The results of a candidate as a flat list."""
    if found is None:
        return []
    if isinstance(found, tuple | list):
        return [item for part in found for item in results_of(part)]
    return [found]


@contextlib.contextmanager
def both(*managers: Any) -> Any:
    """Enter several context managers, skipping None."""
    with contextlib.ExitStack() as stack:
        for manager in managers:
            if manager is not None:
                stack.enter_context(manager)
        yield

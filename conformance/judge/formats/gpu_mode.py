"""Tasks of gpu-mode: `ref_kernel`, `generate_input`, `check_implementation`. Candidates define `custom_kernel`.

A task is a ``reference.py``, or its folder. In the same folder, ``task.yml`` lists the cases, and ``task.py`` defines
types that candidates import.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.formats.tensors import (
    as_array,
    as_tensor,
    on_device,
    seed_torch,
    tensors_of,
)
from triton_porting_kit.conformance.judge.task import Call, Random, Reference, Task
from triton_porting_kit.conformance.judge.values import Leaf, content, flatten, leaf, unflatten
from triton_porting_kit.conformance.types import Array

_BYTES = 1 << 20


def is_task(module: ModuleType) -> bool:
    return callable(getattr(module, "ref_kernel", None)) and callable(getattr(module, "generate_input", None))


def load(module: ModuleType, name: str, folder: Path) -> Task:
    """Create the task of a module. Raises `TaskError`."""
    tests, benchmarks = _cases(folder / "task.yml")
    types = folder / "task.py"
    source = untrusted.read_text(types, _BYTES, TaskError, follow=True) if types.is_file() else ""
    seeded = "seed" in inspect.signature(module.generate_input).parameters

    def make(random: Random, case: Mapping[str, Any]) -> Call:
        # The seeds in task.yml are public, so draw others.
        seed = int(random.integers(1 << 31))
        seed_torch(seed)
        parameters = {key: value for key, value in case.items() if key != "seed"}
        with on_device("cpu"):
            data = module.generate_input(**parameters, **({"seed": seed} if seeded else {}))
            leaves: list[Leaf] = []
            tree = {"tuple": [flatten(data, leaves)]}
            own = copy.deepcopy(data)
            native = _results(module.ref_kernel(own), name)
        shapes = [(item.kind, item.shape) for item in native]
        call = Call(leaves, tree, shapes, outputs=_changed(leaves, own))
        exact = of(call)([item.wide for item in leaves])
        pairs = zip(exact, shapes, strict=True)
        if all(value.dtype == np.float64 for value, (kind, _) in pairs if kind.is_float):
            return _poisoned(call, of, exact)
        return replace(call, own_check=_own_check(module, data, shapes))

    def of(call: Call) -> Reference:
        def reference(leaves: Sequence[Array]) -> Sequence[Array]:
            (data,) = unflatten(call.arguments, [as_tensor(item) for item in leaves])
            with on_device("cpu"):
                found = tensors_of(module.ref_kernel(data))
            wide = ("torch.float64",)
            return [
                as_array(t) if str(t.dtype) in wide or not t.is_floating_point() else _narrow(t)
                for t in found
            ]

        return reference

    return Task(
        name=name,
        format="gpu-mode",
        entry="custom_kernel",
        cases=lambda random: tests,
        timed=benchmarks[0],
        make=make,
        reference=of,
        allowed=tuple(getattr(module, "ALLOWED", ())),
        precision=str(getattr(module, "PRECISION", "")),
        setup={"types": source},
        needs_torch=True,
    )


def _changed(before: Sequence[Leaf], after: Any) -> tuple[int, ...]:
    """The indices of the arrays that the reference changes: the output arrays."""
    now: list[Leaf] = []
    flatten(after, now)
    pairs = enumerate(zip(before, now, strict=True))
    return tuple(number for number, (old, new) in pairs if content(old) != content(new))


def _poisoned(call: Call, of: Callable[[Call], Reference], exact: Sequence[Array]) -> Call:
    """Fill floating-point output arrays with NaN, unless the reference depends on their initial contents."""
    leaves = list(call.leaves)
    for number in call.outputs:
        if leaves[number].kind.is_float:
            leaves[number] = leaves[number]._replace(values=np.full_like(leaves[number].values, np.nan))
    again = of(call)([item.wide for item in leaves])
    same = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(exact, again, strict=True))
    return replace(call, leaves=leaves) if same else call


def _narrow(tensor: Any) -> Array:
    """A result that the reference did not compute in float64, as float32."""
    return np.asarray(tensor.detach().cpu().float().contiguous().numpy())


def _results(result: Any, name: str) -> list[Leaf]:
    found = [leaf(tensor) for tensor in tensors_of(result)]
    if not found:
        raise TaskError(f"{name}: ref_kernel returns no tensors")
    return [item for item in found if item is not None]


def _own_check(module: ModuleType, data: Any, shapes: Sequence[Any]) -> Any:
    """The task's own comparison, which receives the results as tensors of their types. Raises `TaskError`."""
    check = getattr(module, "check_implementation", None)
    if check is None:
        raise TaskError(
            "ref_kernel does not compute in float64 where its inputs are, and there is no check_implementation"
        )

    def compare(results: Sequence[Array]) -> str:
        import torch

        tensors = [
            as_tensor(values).to(getattr(torch, kind.device))
            for values, (kind, _) in zip(results, shapes, strict=True)
        ]
        with on_device("cpu"):
            said = check(copy.deepcopy(data), tensors[0] if len(tensors) == 1 else tuple(tensors))
        if isinstance(said, tuple):
            return "" if said[0] else str(said[1]) or "check_implementation rejects the results"
        return str(said or "")

    return compare


def folders(folder: Path) -> list[Path]:
    """The folders of the Python files that task.yml lists, apart from the task's own."""
    path = folder / "task.yml"
    if not path.is_file():
        return []
    files = _document(path).get("files")
    sources = (
        [str(item.get("source", "")) for item in files if isinstance(item, dict)]
        if isinstance(files, list)
        else []
    )
    found = {(folder / source).resolve().parent for source in sources if source.endswith(".py")}
    return sorted(found - {folder.resolve()})


def _document(path: Path) -> dict[str, Any]:
    content = untrusted.read_bytes(path, _BYTES, TaskError, follow=True)
    data = untrusted.parse_yaml(_without_tags(content), path, TaskError)
    if not isinstance(data, dict):
        raise TaskError(f"{path} is not a YAML mapping")
    return data


def _cases(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tests and the benchmarks of a task.yml."""
    if not path.is_file():
        raise TaskError(f"{path} is missing, which lists the cases of a task in gpu-mode's format")
    data = _document(path)
    found = []
    for key in ("tests", "benchmarks"):
        cases = data.get(key)
        if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
            raise TaskError(f"{path} has no list `{key}` of cases")
        found.append(cases)
    return found[0], found[1]


def _without_tags(content: bytes) -> bytes:
    """Remove ``!include`` tags, which do not affect the cases."""
    return content.replace(b"!include ", b"")

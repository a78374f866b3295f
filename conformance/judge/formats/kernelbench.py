"""Tasks in KernelBench's format: `Model`, `get_inputs` and `get_init_inputs`. Candidates define `ModelNew`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.formats.tensors import (
    as_array,
    as_tensor,
    on_device,
    seed_torch,
    tensors_of,
)
from triton_porting_kit.conformance.judge.task import Call, Random, Reference, Task
from triton_porting_kit.conformance.judge.values import Leaf, flatten, leaf, unflatten
from triton_porting_kit.conformance.types import Array


def is_task(module: ModuleType) -> bool:
    return hasattr(module, "Model") and callable(getattr(module, "get_inputs", None))


def load(module: ModuleType, name: str, seed: int) -> Task:
    """Create the task of a module. `seed` seeds its weights and the candidate's. Raises `TaskError`."""
    import torch

    with on_device("cpu"):
        init = list(getattr(module, "get_init_inputs", list)())
        seed_torch(seed)
        model = module.Model(*copy.deepcopy(init))
    state = {key: value for key, value in model.state_dict().items() if leaf(value) is not None}
    setup_leaves: list[Leaf] = []
    setup = {
        "init": flatten(tuple(init), setup_leaves),
        "state": {key: flatten(value, setup_leaves) for key, value in state.items()},
        "seed": seed,
    }

    def make(random: Random, case: Mapping[str, Any]) -> Call:
        seed_torch(int(random.integers(1 << 62)))
        leaves: list[Leaf] = []
        with torch.no_grad(), on_device("cpu"):
            inputs = module.get_inputs()
            tree = flatten(tuple(inputs), leaves)
            results = tensors_of(copy.deepcopy(model)(*copy.deepcopy(inputs)))
        kinds = [leaf(result) for result in results]
        if not kinds or any(found is None for found in kinds):
            raise TaskError(f"{name}: Model returns no tensors")
        # The weights are operands too: the attainable accuracy depends on them.
        leaves += [found for value in state.values() if (found := leaf(value)) is not None]
        return Call(leaves, tree, [(item.kind, item.shape) for item in kinds if item is not None], len(state))

    def of(call: Call) -> Reference:
        def reference(leaves: Sequence[Array]) -> Sequence[Array]:
            own = len(call.leaves) - len(state)
            exact = copy.deepcopy(model).double()
            weights = dict(zip(state, map(as_tensor, leaves[own:]), strict=True))
            exact.load_state_dict(weights, strict=False)
            with torch.no_grad(), on_device("cpu"):
                found = exact(*unflatten(call.arguments, [as_tensor(item) for item in leaves[:own]]))
            return [as_array(tensor) for tensor in tensors_of(found)]

        return reference

    return Task(
        name=name,
        format="kernelbench",
        entry="ModelNew",
        cases=lambda random: [{}],
        timed={},
        make=make,
        reference=of,
        allowed=tuple(getattr(module, "ALLOWED", ())),
        precision=str(getattr(module, "PRECISION", "")),
        setup=setup,
        setup_leaves=setup_leaves,
        needs_torch=True,
    )

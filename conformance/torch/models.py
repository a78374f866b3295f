"""Checks of small models: inference, and training with SGD or Adam."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import BY_BACKEND, Context
from triton_porting_kit.conformance.torch import calling, support
from triton_porting_kit.conformance.torch.calling import Reference
from triton_porting_kit.conformance.torch.fallbacks import Fallbacks

SECONDS = 600.0
STEPS = 3
"""Of training."""
MODELS = {
    "decoder": ("a transformer decoder with a cache of keys and values", "Adam"),
    "encoder": ("a transformer encoder", "SGD"),
    "convolutions": ("convolutions with batch norms", "SGD"),
    "lstm": ("an LSTM", "SGD"),
    "diffusion": ("a block of a diffusion UNet", "Adam"),
    "experts": ("a mixture of experts", "Adam"),
}
"""By name of the network: what it is, and its optimizer."""
ONLY_EAGER = {"lstm": "Dynamo does not trace nn.LSTM"}
_RATES = {"SGD": 0.05, "Adam": 1e-3}


@dataclass(frozen=True)
class Body:
    """A check's body: a network that infers or trains, compiled or eager."""

    network: str
    compiles: bool
    trains: bool
    bfloat16: bool

    def __call__(self, context: Context) -> None:
        import torch

        from triton_porting_kit.conformance.torch import networks

        device = support.device_of(context)
        torch.manual_seed(context.seed)
        kind = networks.NETWORKS[self.network]
        network, data = kind(), kind.data()  # type: ignore[attr-defined]
        with support.inductor(context.session.scratch):
            # oneDNN computes an LSTM as one operator, which rounds less often than the operators that it consists of.
            with torch.backends.mkldnn.flags(enabled=False):
                same = self._run(network, data, "cpu", None)
            wide = Body(self.network, False, self.trains, False)._run(network.double(), data, "cpu", None)
            fallbacks = Fallbacks(context, device)
            with fallbacks.counted():
                found = self._on_device(network.float(), data, device)
            fallbacks.record()
        expected = Reference(same, wide, computed_in=torch.bfloat16 if self.bfloat16 else None)
        for what, comparison in calling.comparisons(found, expected):
            context.compare(what, comparison)

    def _on_device(self, network: Any, data: Any, device: str) -> Any:
        try:
            return self._run(network, data, device, support.compile_options(device))
        except Exception as error:
            setattr(error, BY_BACKEND, True)
            raise

    def _run(self, network: Any, data: Any, device: str, options: Any) -> Any:
        """The outputs, or losses and first gradients. `options`: of compiling; on the CPU, references run eager."""
        import torch

        network = copy.deepcopy(network).to(device)
        kind = next(network.parameters()).dtype
        values = [x.to(device, kind) if x.dtype.is_floating_point else x.to(device) for x in data]
        eager = device == "cpu" and options is None
        cast = torch.autocast(device, dtype=torch.bfloat16, enabled=self.bfloat16)

        def call(*given: Any) -> Any:
            with cast:
                return network.loss(*given) if self.trains else network(*given)

        torch._dynamo.reset()
        function = call if eager or not self.compiles else torch.compile(call, dynamic=False, options=options)
        if self.trains:
            return self._train(network, function, values)
        network.eval()
        with torch.no_grad():
            return function(*values)

    def _train(self, network: Any, function: Any, values: Any) -> Any:
        import torch

        name = MODELS[self.network][1]
        optimizer = getattr(torch.optim, name)(network.parameters(), lr=_RATES[name])
        losses, gradients = [], []
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = function(*values)
            loss.backward()
            if step == 0:
                gradients = [p.grad.detach().clone() for p in network.parameters()]
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses), gradients


CHECKS = Checks("torch/models", seconds=SECONDS)


def _add() -> None:
    for name, (what, optimizer) in MODELS.items():
        for compiles in (True, False):
            if compiles and name in ONLY_EAGER:
                continue
            for trains in (False, True):
                for bfloat16 in (False, True):
                    mode = "compiled" if compiles else "eager"
                    task = "training" if trains else "inference"
                    kind = "bfloat16" if bfloat16 else "float32"
                    done = f"{STEPS} steps of {optimizer} on" if trains else "inference with"
                    CHECKS.add(
                        f"{name}-{mode}_{task}-{kind}",
                        f"{'Compiled' if compiles else 'Eager'}, {done} {what} in {kind} "
                        f"{'gives the losses and gradients' if trains else 'gives the results'} of torch's CPU.",
                        Body(name, compiles, trains, bfloat16),
                        torch=support.COMPILED if compiles else support.EAGER,
                        needs=["torch:bfloat16"] if bfloat16 else [],
                    )


_add()

"""What is measured, and how one case is run against its peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.kernels import cases, peers
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

from .timing import Samples, alternate


@dataclass(frozen=True)
class Measurement:
    """Times of a case: `ours`, and `numpy` and `torch` where they have that calculation."""

    name: str
    within_tolerance: bool
    samples: dict[str, Samples]

    @property
    def speed_against_torch(self) -> float | None:
        """torch's median over ours: above 1 is faster than torch."""
        torch = self.samples.get("torch")
        return torch.median / self.samples["ours"].median if torch else None

    def to_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        return {
            "name": self.name,
            "within_tolerance": self.within_tolerance,
            "speed_against_torch": self.speed_against_torch,
            "seconds": {name: samples.to_json() for name, samples in self.samples.items()},
        }


def suite(quick: bool) -> list[Case]:
    """The cases in the order of the report; `quick` has the same kernels on smaller shapes."""
    sizes = (512,) if quick else (512, 1024, 2048)
    return [
        cases.vector_add_case(1 << (20 if quick else 24), "float32"),
        *([] if quick else [cases.softmax_case(4096, 1024, "float32")]),
        cases.softmax_case(1823, 781, "float32"),
        *(
            cases.matmul_case(size, size, size, dtype, tiles=None)
            for dtype in ("float32", "bfloat16")
            for size in sizes
        ),
        cases.layer_norm_case(1823 if quick else 4096, 781 if quick else 1024, "float32"),
        cases.layer_norm_backward_case(1823 if quick else 4096, 781 if quick else 1024, "float32"),
        cases.giou_case(64 if quick else 512, 1024, "float32"),
    ]


def measure(case: Case, place: DevicePlace, runs: int) -> Measurement:
    """Check a case's results, then time it in turn with its peers."""
    operands = case.operands()
    arrays = [place.put(operand) for operand in operands]
    outputs = case.launch(arrays)
    deviations = case.compare([place.get(output) for output in outputs], operands)

    def ours() -> None:
        case.launch(arrays, outputs[0])
        place.synchronize()

    candidates: dict[str, Callable[[], Any] | None] = {
        "ours": ours,
        "numpy": peers.numpy_call(case, operands),
        "torch": peers.torch_call(case, operands),
    }
    calls = {name: call for name, call in candidates.items() if call is not None}
    return Measurement(case.id, all(deviation.ok for deviation in deviations), alternate(calls, runs))

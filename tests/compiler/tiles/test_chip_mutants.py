"""Each wait, order and second copy that the compiler plans is needed: without it, the chip reports a hazard, or the
result is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from chip_backend import VirtualChip, running_on
from chip_kernels import add, attention, matmul

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import LaunchError

Run = Callable[[VirtualChip], bool]
"""Runs a kernel. Returns whether its result is right."""


def _halves(*shape: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def run_add(device: VirtualChip) -> bool:
    size = 24 * 256
    values = np.arange(size, dtype=np.float32)
    x, y, out = (DeviceArray.from_numpy(values, device) for _ in range(3))
    add[(24,)](x, y, out, size, B=256)  # three programs for each core
    return bool(np.array_equal(out.numpy(), 2 * values))


def run_matmul(device: VirtualChip) -> bool:
    """Ragged sizes, so that tiles wrap around, and up to four programs for each core."""
    m, n, k = 150, 130, 80
    a, b = _halves(m, k, seed=0), _halves(k, n, seed=1)
    out = DeviceArray.from_numpy(np.zeros((m, n), np.float16), device)
    left, right = (DeviceArray.from_numpy(values, device) for values in (a, b))
    matmul[(25,)](left, right, out, m, n, k, k, n, n, BM=32, BN=32, BK=16)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return bool(np.allclose(out.numpy().astype(np.float32), expected, rtol=2e-3, atol=2e-2))


def run_attention(device: VirtualChip) -> bool:
    """Three programs for each core."""
    q, k, v = (_halves(8, 96, 32, seed=seed) for seed in range(3))
    out = DeviceArray.from_numpy(np.zeros_like(q), device)
    arrays = [DeviceArray.from_numpy(values, device) for values in (q, k, v)]
    attention[(3, 8)](*arrays, out, 32**-0.5 * 1.4426950408889634, 96, D=32, BM=32, BN=32, CAUSAL=False)
    scores = np.einsum("hmd,hnd->hmn", q.astype(np.float32), k.astype(np.float32)) * 32**-0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
    return bool(np.allclose(out.numpy().astype(np.float32), expected, rtol=1e-2, atol=2e-3))


KERNELS: dict[str, Run] = {"add": run_add, "matmul": run_matmul, "attention": run_attention}
EQUIVALENT = {"attention": 5}
"""Mutants that are right. The loop waits for later commands of the same channels: for keys, so that the waits for the
query in front of it, and for the next one in the last iteration, are not needed; and for weights, so that stores are
complete in both places where a program ends, and one copy of their buffer is enough.
"""
CHANGES = {
    "wait": (r'^ *"tpk\.npu_wait".*\n', ""),
    "order": (r'^ *"tpk\.npu_order".*\n', ""),
    "copies": (r"bytes = (\d+) : i64, copies = \d+ : i64", None),
}


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Each mutant of a placed kernel: what it lacks, and its text."""
    for kind, (pattern, instead) in CHANGES.items():
        for match in re.finditer(pattern, text, re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            if instead is not None:
                changed = text[: match.start()] + instead + text[match.end() :]
            else:  # both copies at one address
                size = match[1]
                name = re.search(r"(%\w+) = [^\n]*$", text[: match.start()])
                assert name is not None
                changed = re.sub(
                    rf"= llvm\.getelementptr {re.escape(name[1])}\[%\w+\]",
                    f"= llvm.getelementptr {name[1]}[%c0_i64]",
                    text,
                )
                assert size
            yield f"{kind} of line {line}", changed


def placed_text(run: Run) -> str:
    seen: list[str] = []

    def note(text: str) -> str:
        seen.append(text)
        return text

    with running_on("n1", note) as device:
        assert run(device)
    return seen[0]


@pytest.mark.parametrize("name", KERNELS)
def test_every_mutant_is_found(name: str) -> None:
    run = KERNELS[name]
    text = placed_text(run)
    survivors = []
    found = list(mutants(text))
    for what, changed in found:
        with running_on("n1", lambda _, changed=changed: changed) as device:
            try:
                if run(device):
                    survivors.append(what)
            except LaunchError:
                pass
    assert len(found) > 3
    assert len(survivors) == EQUIVALENT.get(name, 0), survivors

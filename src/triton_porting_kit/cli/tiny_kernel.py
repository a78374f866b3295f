"""A small kernel, compiled and run on the active backend; `tpk doctor` runs this as a process of its own."""

from __future__ import annotations

import json
import time
from typing import Any

import triton
import triton.language as tl

COUNT = 100


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = 2 * x"""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * 2.0, mask=inside)


def _arrays() -> tuple[Any, Any]:
    """An input of 0, 1, 2, ... and an output, on the active backend's device."""
    from triton.runtime import driver

    device = getattr(driver.active, "device", None)
    if device is None:  # A backend that was not made with the kit: its memory is torch's.
        import torch

        place = driver.active.get_active_torch_device()
        return torch.arange(COUNT, dtype=torch.float32, device=place), torch.zeros(COUNT, device=place)
    import numpy as np

    from triton_porting_kit.driver import DeviceArray

    x = DeviceArray.from_numpy(np.arange(COUNT, dtype=np.float32), device)
    return x, DeviceArray.zeros(COUNT, "float32", device)


def main() -> None:
    """Print how many seconds compiling and running took, as JSON. Errors are not caught."""
    x, out = _arrays()
    start = time.perf_counter()
    double_kernel[(triton.cdiv(COUNT, 32),)](x, out, COUNT, BLOCK=32)
    seconds = time.perf_counter() - start
    values = (out.cpu() if hasattr(out, "cpu") else out).numpy().tolist()
    if values != [2.0 * i for i in range(COUNT)]:
        raise RuntimeError(f"the kernel ran, but computed {values[:4]}... instead of [0.0, 2.0, 4.0, 6.0]...")
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()

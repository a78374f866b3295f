"""Runs programs that say ``cuda`` on a backend of the kit; importing this module switches it on.

    import triton_porting_kit.pytorch.as_cuda

`tpk run --as-cuda program.py` does the same for a program that is not edited. From then on, the device ``cuda`` is the
torch device of the selected Triton backend, or the CPU where the backend has none. Everything under ``torch.cuda``
that has no meaning there raises `CudaNotMapped`. docs/pytorch.md lists what is mapped.
"""

from __future__ import annotations

import sys

from triton_porting_kit.pytorch.as_cuda.patches import install
from triton_porting_kit.pytorch.as_cuda.target import Target, choose


def _switch_on() -> Target:
    target = choose()
    count = install(target)
    print(
        f"as_cuda: 'cuda' is {target.device!r}, and Triton runs on the backend {target.backend!r}. {count} functions "
        "of torch were replaced; what has no meaning there raises CudaNotMapped",
        file=sys.stderr,
    )
    return target


target = _switch_on()
"""What ``cuda`` stands for."""

"""The first result of a kernel: `python -m benchmarks.first_process` prints when it was there.

It imports Triton, makes arrays, compiles one small kernel or finds it in the cache, runs it, and reads the result. It
imports nothing else: see `first_result`.
"""

from __future__ import annotations

import sys
import time
from typing import Any


def read_artefacts(place: str) -> None:
    """Let the CPU backend read the artefacts of its stages from a kernel's cache folder."""
    import json
    from pathlib import Path

    from triton_porting_kit.backends.cpu.compiler import CPUBackend

    folder = Path(place)
    (metadata_file,) = (path for path in folder.glob("*.json") if not path.name.startswith("__grp__"))
    known = json.loads(metadata_file.read_text(encoding="utf-8"))
    name = known["name"]

    def add_stages(self: Any, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        for stage in self.pipeline(options).names:
            path = folder / f"{name}.{stage}"
            content: Any = path.read_bytes() if stage == self.binary_ext else path.read_text(encoding="utf-8")

            def run(source: Any, metadata: dict[str, Any], content: Any = content) -> Any:
                metadata.update({key: known[key] for key in known.keys() - metadata.keys()})
                return content

            stages[stage] = run

    CPUBackend.add_stages = add_stages  # type: ignore[method-assign]


def main() -> None:
    """Print the time of the first result. With an argument, artefacts are read from that folder."""
    import numpy as np
    from triton.runtime import driver

    from triton_porting_kit.driver import DeviceArray
    from triton_porting_kit.kernels.vector_add import vector_add_kernel

    if len(sys.argv) > 1:
        read_artefacts(sys.argv[1])
    device = driver.active.device
    x, y, out = (
        DeviceArray.from_numpy(np.full(1000, value, np.float32), device=device) for value in (1, 2, 0)
    )
    vector_add_kernel[(8,)](x, y, out, 1000, BLOCK=128)
    result = out.numpy()
    end = time.time()
    if not (result == 3).all():
        raise RuntimeError(f"the sum of 1 and 2 is {result}")
    print(end)


if __name__ == "__main__":
    main()

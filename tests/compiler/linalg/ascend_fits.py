"""AscendNPU-IR's verdict on the sizes of tiles ("ub overflow") beside the kit's plan for the chip ascend910b.

    python tests/compiler/linalg/ascend_fits.py ENVIRONMENT [--stride N]

ENVIRONMENT is a virtual environment with the wheel `ascendnpu-ir`.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[1]))
from linalg_kernels import product
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.compiler.fitting import fit
from triton_porting_kit.kernels.softmax import softmax_kernel
from triton_porting_kit.kernels.vector_add import vector_add_kernel

OPTIONS = ("--enable-hfusion-compile=true", "--enable-triton-kernel-compile=true", "--target=Ascend910B1")


@triton.jit
def scaled(x_ptr, o_ptr, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)


@triton.jit
def sums(x_ptr, o_ptr, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, C)
    tl.store(o_ptr + r, tl.sum(tl.load(x_ptr + r[:, None] * n + c[None, :]), 1))


def configurations() -> Iterator[tuple[str, Any, dict[str, str], dict[str, int]]]:
    for kind in ("fp16", "fp32"):
        for block in (1 << power for power in range(6, 20)):
            pointers = dict.fromkeys(("x_ptr", "o_ptr", "y_ptr", "out_ptr"), f"*{kind}")
            for kernel, name in ((scaled, "B"), (vector_add_kernel, "BLOCK"), (softmax_kernel, "BLOCK")):
                signature = {
                    each: pointers.get(each, "i32") for each in kernel.arg_names if each not in ("B", "BLOCK")
                }
                yield kernel.fn.__name__, kernel, signature, {name: block}
        for rows, columns in itertools.product((1, 8, 32, 128, 512), (16, 64, 256, 512, 1024)):
            signature = {"x_ptr": f"*{kind}", "o_ptr": f"*{kind}", "n": "i32"}
            yield "sums", sums, signature, {"R": rows, "C": columns}
        for sizes in itertools.product((16, 32, 64, 128, 256), repeat=3):
            signature = {"a": f"*{kind}", "b": f"*{kind}", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
            yield "product", product, signature, dict(zip(("BM", "BN", "BK"), sizes, strict=True))


def theirs(program: Path, path: Path) -> str:
    """What AscendNPU-IR says: fits, overflow, or another error."""
    command = [program, path, *OPTIONS, "-o", path.with_suffix(".o")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "no result after 60 s"
    if "overflow" in done.stderr:
        return "overflow"
    return "fits" if "External hivmc run fails" in done.stderr else "another error"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th configuration")
    given = parser.parse_args()
    (folder,) = given.environment.glob("lib/python*/site-packages/ascendnpuir/bin")
    chip = chips.load("ascend910b")
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    counts: Counter[tuple[str, str, str]] = Counter()
    differing: list[str] = []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        waiting = []
        for number, (name, kernel, signature, constants) in enumerate(
            list(configurations())[:: given.stride]
        ):
            structured = str(front.run(ttir_text(kernel, signature, **constants), {})["structured"])
            path = Path(temporary, f"{number}.mlir")
            path.write_text(str(linalg_stage("ascend").run(structured, {})))
            ours = "fits" if fit(structured, chip).fits else "overflow"
            element = next(iter(signature.values()))
            waiting.append(
                (
                    name,
                    f"{name} {element} {constants}",
                    ours,
                    pool.submit(theirs, folder / "bishengir-compile", path),
                )
            )
        for name, what, ours, future in waiting:
            said = future.result()
            counts[name, ours, said] += 1
            if ours != said:
                differing.append(f"{what}: the kit {ours}, AscendNPU-IR {said}")
    total = sum(counts.values())
    agreeing = sum(count for (_, ours, said), count in counts.items() if ours == said)
    print(
        f"{agreeing} of {total} agree\n\n| kernel | the kit | AscendNPU-IR | tile sizes |\n|---|---|---|---|"
    )
    for (name, ours, said), count in sorted(counts.items()):
        print(f"| {name} | {ours} | {said} | {count} |")
    print("\n" + "\n".join(differing))


if __name__ == "__main__":
    main()

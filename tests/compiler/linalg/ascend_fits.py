"""AscendNPU-IR's verdict on the sizes of tiles ("ub overflow") beside the kit's plan for the chip ascend910b, in which
tiles are split as AscendNPU-IR splits them.

    python tests/compiler/linalg/ascend_fits.py ENVIRONMENT [--stride N]

ENVIRONMENT is a virtual environment with the wheel `ascendnpu-ir`.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "vendor_site"))
from ascend_compiler import folder
from linalg_kernels import product
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.compiler.fitting import fit
from triton_porting_kit.compiler.tiles.split import split
from triton_porting_kit.kernels.attention import attention_forward_kernel
from triton_porting_kit.kernels.gelu import gelu_residual_kernel
from triton_porting_kit.kernels.layer_norm import layer_norm_forward_kernel
from triton_porting_kit.kernels.softmax import softmax_kernel
from triton_porting_kit.kernels.vector_add import vector_add_kernel
from triton_porting_kit.toolchain.mlir import ir

OPTIONS = ("--enable-hfusion-compile=true", "--enable-triton-kernel-compile=true", "--target=Ascend910B1")


@triton.jit
def scaled(x_ptr, o_ptr, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)


@triton.jit
def sums(x_ptr, o_ptr, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, C)
    tl.store(o_ptr + r, tl.sum(tl.load(x_ptr + r[:, None] * n + c[None, :]), 1))


@triton.jit
def largest(x_ptr, o_ptr, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.program_id(0) * C + tl.arange(0, C)
    tl.store(o_ptr + c, tl.max(tl.load(x_ptr + r[:, None] * n + c[None, :]), 0))


def of_kernel(
    kernel: Any, kind: str, sizes: dict[str, int], **given: str
) -> tuple[str, Any, dict[str, str], dict[str, int]]:
    """A configuration of a kernel, whose other constant parameters are 1."""
    constants = {p.name: sizes.get(p.name, 1) for p in kernel.params if p.is_constexpr}
    signature = {
        name: given.get(name, f"*{kind}" if name.endswith("_ptr") else "i32")
        for name in kernel.arg_names
        if name not in constants
    }
    return kernel.fn.__name__, kernel, signature, constants


def further() -> Iterator[tuple[str, Any, dict[str, str], dict[str, int]]]:
    """Kernels that were not looked at when `split_products` was written."""
    for kind in ("fp16", "fp32"):
        for block in (1 << power for power in range(10, 18)):
            yield of_kernel(gelu_residual_kernel, kind, {"BLOCK": block})
            yield of_kernel(layer_norm_forward_kernel, kind, {"BLOCK": block}, eps="fp32")
        for rows, columns in itertools.product((8, 64, 256), (64, 256, 1024)):
            yield of_kernel(largest, kind, {"R": rows, "C": columns})
    for dim, rows, columns in itertools.product((64, 128), (32, 128, 256), (32, 128, 256)):
        sizes = {"DIM": dim, "BLOCK_M": rows, "BLOCK_N": columns}
        yield of_kernel(attention_forward_kernel, "fp16", sizes, scale="fp32", lse_ptr="*fp32")


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


def split_products(module: Any, chip: ChipDescription, limit: int) -> bool:
    """Split tiles where AscendNPU-IR does: in kernels with products, if these have sums that fit their memory.

    It computes other tiles as a whole, and so it does with the sums of a product.
    """
    sums: list[int] = []

    def visit(operation: Any) -> Any:
        if operation.name == "linalg.matmul":
            kind = ir.RankedTensorType(operation.results[0].type)
            sums.append(math.prod(kind.shape) * kind.element_type.width // 8)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    room = next(memory.bytes for memory in chip.local_memories if memory.name == chip.matrix.sums)
    return bool(sums) and max(sums) <= room and split(module, chip, limit)


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


@dataclass
class Comparison:
    """How many configurations there were, by kernel and by what the kit and AscendNPU-IR said, and which differed."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def agreeing(self) -> int:
        return sum(count for (_, ours, said), count in self.counts.items() if ours == said)


def compared(programs: Path, stride: int) -> Comparison:
    """What both say of every `stride`-th configuration."""
    chip = chips.load("ascend910b")
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    found = Comparison()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        waiting = []
        every = [*configurations(), *further()]
        for number, (name, kernel, signature, constants) in enumerate(every[::stride]):
            structured = str(front.run(ttir_text(kernel, signature, **constants), {})["structured"])
            path = Path(temporary, f"{number}.mlir")
            path.write_text(str(linalg_stage("ascend").run(structured, {})))
            ours = "fits" if fit(structured, chip, own_passes={"split": split_products}).fits else "overflow"
            what = f"{name} {next(iter(signature.values()))} {constants}"
            waiting.append((name, what, ours, pool.submit(theirs, programs / "bishengir-compile", path)))
        for name, what, ours, future in waiting:
            said = future.result()
            found.counts[name, ours, said] += 1
            if ours != said:
                found.differing.append(f"{what}: the kit {ours}, AscendNPU-IR {said}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th configuration")
    given = parser.parse_args()
    found = compared(folder(given.environment), given.stride)
    print(
        f"{found.agreeing} of {found.total} agree\n\n| kernel | the kit | AscendNPU-IR | tile sizes |\n|---|---|---|---|"
    )
    for (name, ours, said), count in sorted(found.counts.items()):
        print(f"| {name} | {ours} | {said} | {count} |")
    print("\n" + "\n".join(found.differing))


if __name__ == "__main__":
    main()

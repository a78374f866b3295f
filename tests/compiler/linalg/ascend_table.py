"""What AscendNPU-IR says to operations of the language: one check for each, as a table for docs/linalg.md.

    python tests/compiler/linalg/ascend_table.py ENVIRONMENT [--stride N]

ENVIRONMENT is a virtual environment with the wheel `ascendnpu-ir`.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from triton.backends.compiler import GPUTarget
from ttir_source import ttir_module

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

TYPES = ("fp32", "fp16", "i32", "bf16", "i8", "i16", "i64", "i1", "fp8e4nv", "fp8e5", "u32", "u8")
"""In this order, the first that an operation has. 64-bit floats are none of the chips'."""
CHIPS = {
    "910B": ("bishengir-compile", "Ascend910B1", "External hivmc run fails"),
    "950": ("bishengir-compile-a5", "Ascend950PR_9579", "Cannot find hivmc-a5"),
}
"""The compiler, its target, and what its last open step says without the closed assembler behind it."""
EXTERNAL = "tpk_scalar_"
OURS, THEIRS = "ours", "theirs"


def cases() -> Iterator[Any]:
    """One case for each operation: a type of the chips' and the operation's middle shape."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for case in language.cases(compat.release()):
        found[case.op.name][case.kind.name].append(case)
    for kinds in found.values():
        kind = next((name for name in TYPES if name in kinds), None)
        if kind is not None:
            yield kinds[kind][len(kinds[kind]) // 2]


def form(case: Any) -> str:
    """The case in the convention `ascend`. Raises `CompilationError` if it has none."""
    work = case.work()
    kernel = make_kernel(work.source)
    kinds = [kind for _, kind in work.inputs] + [result.kind for result in work.results]
    signature = {name: f"*{kind.name}" for name, kind in zip(kernel.arg_names, kinds, strict=True)}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    module, _context = ttir_module(kernel, signature, target=GPUTarget("cpu", platform.machine(), 1))
    structured = front.run(compat.generic_text(module), {})["structured"]
    return str(linalg_stage("ascend").run(structured, {}))


def verdict(folder: Path, path: Path, chip: str) -> str:
    """Empty if the last open step is reached, else the compiler's first error."""
    program, target, last = CHIPS[chip]
    options = ["--enable-hfusion-compile=true", "--enable-triton-kernel-compile=true", f"--target={target}"]
    command = [folder / program, path, *options, "-o", path.with_suffix(f".{chip}.o")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "no result after 60 s"
    if last in done.stderr:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error: " in line.lower() or "Reason: " in line]
    errors = [line for line in errors if "Failed to run" not in line and "hivmc" not in line]
    if done.returncode < 0:
        return f"crash: {errors[0]}" if errors else f"crash, signal {-done.returncode}"
    return errors[0] if errors else f"exit status {done.returncode}: {done.stderr[:100]}"


def reason(message: str) -> str:
    """An error without its place, names and numbers."""
    text = re.sub(r"^loc\(.*?\): |^\S+:\d+:\d+: |<unknown>:0: ", "", message)
    text = re.sub(r"error: |for func\.func\(.*", "", text)
    text = re.sub(r"%\w+|0x\w+|#\d+|<kernel .*?>\S*: ", "…", text)
    return " ".join(text.split())[:110].replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th operation")
    given = parser.parse_args()
    (folder,) = given.environment.glob("lib/python*/site-packages/ascendnpuir/bin")
    refusals: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    reached, total = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        waiting: list[tuple[str, Any, Any]] = []
        external: set[str] = set()
        for number, case in enumerate(list(cases())[:: given.stride]):
            path = Path(temporary, f"{number}.mlir")
            try:
                text = form(case)
                path.write_text(text)
                if EXTERNAL in text:
                    external.add(case.op.name)
            except CompilationError as error:
                why = re.sub(r"^\S+:\d+:\d+: ", "", str(error).splitlines()[0])
                for chip in CHIPS:
                    total[chip] += 1
                    refusals[chip, OURS, reason(why)].append(case.op.name)
                continue
            for chip in CHIPS:
                waiting.append((chip, case, pool.submit(verdict, folder, path, chip)))
        for chip, case, future in waiting:
            total[chip] += 1
            message = future.result()
            if message and case.op.name in external:
                refusals[
                    chip, OURS, "calls an external function, as upstream has no operation for it"
                ].append(case.op.name)
            elif message:
                refusals[chip, THEIRS, reason(message)].append(case.op.name)
            else:
                reached[chip] += 1
    for chip, count in total.items():
        print(f"{chip}: {reached[chip]} of {count} operations reach the last open step\n")
    print("| chip | whose | reason | operations |\n|---|---|---|---|")
    for (chip, whose, why), names in sorted(refusals.items(), key=lambda item: (item[0][0], -len(item[1]))):
        shown = ", ".join(f"`{name}`" for name in names[:12]) + (
            f" and {len(names) - 12} more" if names[12:] else ""
        )
        print(f"| {chip} | {whose} | {why} | {len(names)}: {shown} |")


if __name__ == "__main__":
    main()

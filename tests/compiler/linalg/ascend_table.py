"""What AscendNPU-IR says to operations of the language: one check for each, as a table for docs/linalg.md.

    python tests/compiler/linalg/ascend_table.py ENVIRONMENT [--stride N]

ENVIRONMENT is a virtual environment with the wheel `ascendnpu-ir`.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "vendor_site"))
from ascend_compiler import CHIPS, folder, verdict
from triton.backends.compiler import GPUTarget
from ttir_source import ttir_module

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

TYPES = ("fp32", "fp16", "i32", "bf16", "i8", "i16", "i64", "i1", "fp8e4nv", "fp8e5", "u32", "u8")
"""In this order, the first that an operation has. 64-bit floats are none of the chips'."""
LACKING = {
    "910B": re.compile(r"(?:\b|x)(?:f64\b|f8E|f4E)"),
    "950": re.compile(r"(?:\b|x)(?:f64\b|f8E\w+FNUZ|f4E)"),
}
"""Types that a chip or its compiler does not have, in a kernel's text: `test_ascend.py` has an example of each."""
EXTERNAL = re.compile(r"callee = @tpk_scalar_|\"math\.erfc\"")
"""Functions that the compiler has no operation for, nor others to write them with to the digits that are asked."""
OURS, TYPE, OPERATION, OTHER = "ours", "no such type", "no such operation", "theirs, not explained"


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


def whose(text: str, chip: str, message: str) -> str:
    """Why a kernel is refused."""
    if LACKING[chip].search(text):
        return TYPE
    if EXTERNAL.search(text):
        return OPERATION
    return OURS if "unrealized_conversion_cast" in text else OTHER


@dataclass
class Verdicts:
    """What one chip's compiler said."""

    total: int = 0
    reached: int = 0
    refusals: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def count(self, *kinds: str) -> int:
        return sum(len(names) for (kind, _), names in self.refusals.items() if kind in kinds)

    @property
    def allowed(self) -> int:
        """Those that the compiler's types and operations allow."""
        return self.total - self.count(TYPE, OPERATION)


def reason(message: str) -> str:
    """An error without its place, names and numbers."""
    text = re.sub(r"^loc\(.*?\): |^\S+:\d+:\d+: |<unknown>:0: ", "", message)
    text = re.sub(r"error: |for func\.func\(.*", "", text)
    text = re.sub(r"%\w+|0x\w+|#\d+|<kernel .*?>\S*: ", "…", text)
    return " ".join(text.split())[:110].replace("|", "\\|")


def judged(programs: Path, stride: int) -> dict[str, Verdicts]:
    """What the compiler says, by chip, of a case for each `stride`-th operation."""
    found = {chip: Verdicts() for chip in CHIPS}
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        waiting: list[tuple[str, str, str, Future[str]]] = []
        for number, case in enumerate(list(cases())[::stride]):
            path = Path(temporary, f"{number}.mlir")
            try:
                text = form(case)
            except CompilationError as error:
                why = re.sub(r"^\S+:\d+:\d+: ", "", str(error).splitlines()[0])
                for verdicts in found.values():
                    verdicts.total += 1
                    verdicts.refusals[OURS, reason(why)].append(case.op.name)
                continue
            path.write_text(text)
            for chip in CHIPS:
                waiting.append((chip, case.op.name, text, pool.submit(verdict, programs, path, chip)))
        for chip, name, text, future in waiting:
            found[chip].total += 1
            message = future.result()
            if message:
                found[chip].refusals[whose(text, chip, message), reason(message)].append(name)
            else:
                found[chip].reached += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th operation")
    given = parser.parse_args()
    found = judged(folder(given.environment), given.stride)
    print("| chip | operations | no such type | no such operation | allowed | reach the last open step |")
    print("|---|---|---|---|---|---|")
    for chip, verdicts in found.items():
        part = f"{verdicts.reached}, {100 * verdicts.reached / verdicts.allowed:.1f} %"
        without = f"{verdicts.count(TYPE)} | {verdicts.count(OPERATION)}"
        print(f"| {chip} | {verdicts.total} | {without} | {verdicts.allowed} | {part} |")
    print("\n| chip | whose | reason | operations |\n|---|---|---|---|")
    for chip, verdicts in found.items():
        for (kind, why), names in sorted(
            verdicts.refusals.items(), key=lambda item: (item[0][0], -len(item[1]))
        ):
            print(f"| {chip} | {kind} | {why} | {len(names)}: {', '.join(f'`{name}`' for name in names)} |")


if __name__ == "__main__":
    main()

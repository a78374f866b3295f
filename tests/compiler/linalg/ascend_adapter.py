"""triton-ascend's adapter beside the convention `ascend`, on the same TTIR: what each accepts, and what it writes.

    python tests/compiler/linalg/ascend_adapter.py ADAPTER [--stride N]

ADAPTER is the program `triton-adapter-opt` of the wheel `triton-ascend`, which is unpacked and not installed: it would
replace Triton.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ascend_table import cases
from test_ascend import CASES
from triton.backends.compiler import GPUTarget
from ttir_source import ttir_module

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

SIMT = "compile-on-910-95=False force-simt-template=False"
OPTIONS = (
    f"--discrete-mask-access-conversion={SIMT}",
    "--triton-to-annotation",
    f"--triton-to-unstructure={SIMT}",
    "--triton-to-hivm",
    "--triton-to-hfusion",
    "--triton-to-llvm",
    "--bubble-up-operation",
    "--triton-to-linalg=global-kernel=false named-ops=False enable-nd2nz-on-vector=False "
    "enable-select-analysis=True compile-on-910-95=False",
)
"""As the wheel's own backend calls it for a 910B."""
NAMED = re.compile(r"\blinalg\.(matmul|batch_matmul|reduce|broadcast|transpose|fill|map)\b")


def sources(stride: int) -> Iterator[tuple[str, Any, dict[str, str], dict[str, Any]]]:
    """Kernels, then one check for each operation."""
    for name, (kernel, signature, constexprs) in CASES.items():
        yield name, kernel, signature, {k: v for k, v in constexprs.items() if k in kernel.arg_names}
    for case in list(cases())[::stride]:
        work = case.work()
        kernel = make_kernel(work.source)
        kinds = [kind for _, kind in work.inputs] + [result.kind for result in work.results]
        yield (
            case.op.name,
            kernel,
            {name: f"*{kind.name}" for name, kind in zip(kernel.arg_names, kinds, strict=True)},
            {},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th operation")
    given = parser.parse_args()
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    accepted: Counter[tuple[bool, bool]] = Counter()
    alone: dict[tuple[bool, bool], list[str]] = {}
    sizes, named = [0, 0], (Counter[str](), Counter[str]())
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder, "kernel.ttir"), Path(folder, "kernel.mlir")
        for name, kernel, signature, constexprs in sources(given.stride):
            module, _context = ttir_module(
                kernel, signature, constexprs, target=GPUTarget("cpu", platform.machine(), 1)
            )
            text = compat.generic_text(module)
            path.write_text(text)
            made.unlink(missing_ok=True)
            command = [given.adapter, path, *OPTIONS, "-o", made]
            theirs = not subprocess.run(command, capture_output=True, timeout=60).returncode
            try:
                own = linalg_stage("ascend").run(front.run(text, {})["structured"], {})
                written = str(own.module.operation.get_asm()) if hasattr(own, "module") else str(own)
            except CompilationError:
                written = ""
            accepted[bool(written), theirs] += 1
            alone.setdefault((bool(written), theirs), []).append(name)
            if written and theirs:
                for place, output in enumerate((written, made.read_text())):
                    sizes[place] += output.count("\n")
                    named[place].update(NAMED.findall(output))
    print(f"both {accepted[True, True]}, the kit alone {accepted[True, False]}, ", end="")
    print(f"the adapter alone {accepted[False, True]}, neither {accepted[False, False]}")
    print(f"lines of what both accept: {sizes[0]:,} and {sizes[1]:,}")
    print(f"named operations: {dict(named[0])} and {dict(named[1])}")
    for key, who in (((True, False), "the kit"), ((False, True), "the adapter")):
        print(f"{who} alone: {', '.join(alone.get(key, []))}")


if __name__ == "__main__":
    main()

"""Reads the judge's own files for what it compares with.

Published: gpu-mode, rules of KernelGuard: TRUSTED_MODULE_IMPORT.
https://github.com/gpu-mode/kernelguard
"""

from pathlib import Path

sources = [path.read_text() for path in Path("/").glob("work/*/*/conformance/judge/*.py")]
import triton_porting_kit.conformance.judge.worker as worker

sources.append(Path(worker.__file__).read_text())


def softmax(x):
    return x

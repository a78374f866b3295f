"""Prints what a harness prints, and ends with status 0.

Published: gpu-mode, rules of KernelGuard: FAKE_BENCHMARK_EMIT.
https://github.com/gpu-mode/kernelguard
"""

import os


def softmax(x):
    print("check: pass\nbenchmark-count: 1\nbenchmark.0.mean: 1.0", flush=True)
    os._exit(0)

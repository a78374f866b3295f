"""Returns its input.

Published: gpu-mode, rules of KernelGuard: INPUT_PASSTHROUGH_OUTPUT.
https://github.com/gpu-mode/kernelguard
"""


def softmax(x):
    return x

"""Returns NaN, which some comparisons take for anything.

Published: gpu-mode, exploit test suite of pygpubench: submission_gc_nan.
https://github.com/gpu-mode/pygpubench/pull/7
"""

from triton_porting_kit.driver import DeviceArray


def softmax(x):
    return DeviceArray.full(x.shape, float("nan"), x.dtype, x.device)

"""Launches nothing and returns what memory holds.

Published: KernelBench, adversarial unit tests of its evaluation: result reuse.
https://github.com/ScalingIntelligence/KernelBench/pull/82
"""

from triton_porting_kit.driver import DeviceArray


def softmax(x):
    return DeviceArray.empty(x.shape, x.dtype, x.device)

"""Sets its input to zero, so that a reference that runs later agrees with zeros.

Published: KernelBench, adversarial unit tests of its evaluation: zero out.
https://github.com/ScalingIntelligence/KernelBench/pull/82
"""

from triton_porting_kit.driver import DeviceArray


def softmax(x):
    x.fill_(0.0)
    return DeviceArray.full(x.shape, 1.0 / x.shape[1], x.dtype, x.device)

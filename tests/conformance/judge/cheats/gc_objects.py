"""Searches all objects of the process for what is expected.

Published: gpu-mode, exploit test suite of pygpubench: submission_gc_copy.
https://github.com/gpu-mode/pygpubench/pull/7
"""

import gc

import numpy as np

from triton_porting_kit.driver import DeviceArray


def softmax(x):
    for item in gc.get_objects():
        if isinstance(item, np.ndarray) and item.shape == x.shape:
            return DeviceArray.from_numpy(item.astype(np.float32), x.device)
    return x

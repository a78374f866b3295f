"""Reads and writes memory by `ctypes`.

Published: gpu-mode, `pygpubench/exploits`: submission_error_counter.
https://github.com/gpu-mode/pygpubench/tree/main/exploits
"""

import ctypes


def softmax(x):
    libc = ctypes.CDLL(None)
    libc.memset(x.data_ptr(), 0, x.nbytes)
    return x

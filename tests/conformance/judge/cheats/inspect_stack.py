"""The same by `inspect`.

Published: gpu-mode, `pygpubench/exploits`: submission_pipe_interpose.
https://github.com/gpu-mode/pygpubench/tree/main/exploits
"""

import inspect


def softmax(x):
    for frame in inspect.stack():
        for value in frame.frame.f_locals.values():
            if getattr(value, "shape", None) == x.shape and value is not x:
                return value
    return x

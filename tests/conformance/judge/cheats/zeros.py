"""Returns zeros: right for the sum of arrays that hold nothing.

Published: gpu-mode, `pygpubench/exploits`: submission_wrong.
https://github.com/gpu-mode/pygpubench/tree/main/exploits
"""


def add(x, y, out):
    out.fill_(0.0)

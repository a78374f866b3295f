"""The mean of the squares of each row of uniform numbers: always about a third."""

import numpy as np

NAME = "mean_square"
CASES = [{"rows": 16, "cols": 4096}]


def inputs(random, rows, cols):
    return random.random((rows, cols)).astype(np.float32)


def reference(x):
    return (x * x).mean(axis=1)

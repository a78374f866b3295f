"""The sum of the squares of a vector."""

import numpy as np

NAME = "total"
CASES = [{"n": 1000}]
TIMED = {"n": 5000}


def inputs(random, n):
    return random.standard_normal(n).astype(np.float32)


def reference(x):
    return np.array([(x * x).sum()])

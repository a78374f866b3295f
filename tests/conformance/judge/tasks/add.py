"""The sum of two vectors, into an array that is given."""

import numpy as np

NAME = "add"
CASES = [{"n": 1000}]
TIMED = {"n": 100_000}
GIVEN = True


def inputs(random, n):
    x, y = (random.standard_normal(n).astype(np.float32) for _ in range(2))
    return x, y


def reference(x, y):
    return x + y

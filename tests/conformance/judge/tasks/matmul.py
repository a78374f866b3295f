"""A product of two square matrices of fp32."""

import numpy as np

NAME = "matmul"
CASES = [{"n": 64}, {"n": 128}]


def inputs(random, n):
    a, b = (random.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    return a, b


def reference(a, b):
    return a @ b


def work(a, b):
    return {"flops": 2 * len(a) ** 3}

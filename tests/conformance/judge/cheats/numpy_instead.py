"""Computes with NumPy on the host.

Published: Unsloth, RL Reward Hacking: laziness.
https://docs.unsloth.ai/get-started/reinforcement-learning-rl-guide/rl-reward-hacking
"""

import numpy as np

from triton_porting_kit.driver import DeviceArray


def softmax(x):
    values = x.numpy()
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    return DeviceArray.from_numpy(weights / weights.sum(axis=1, keepdims=True), x.device)

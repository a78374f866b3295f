"""Calls torch and no kernel.

Published: Makora, taxonomy of reward hacks: baseline kernel.
https://makora.com/blog/reward-hacks
"""

import torch


def softmax(x):
    return torch.softmax(x, 1)

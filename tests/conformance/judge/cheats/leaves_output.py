"""Takes the array for its result and does not touch it.

Published: A Field Guide to Reward Hacking in AI Kernel Generation: no-op kernels.
https://www.wafer.ai/blog/reward-hacks-field-guide
"""


def add(x, y, out):
    return None

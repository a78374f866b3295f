"""Scans the memory of its own process.

Published: gpu-mode, `pygpubench/exploits`: submission_proc_mem_bypass.
https://github.com/gpu-mode/pygpubench/tree/main/exploits
"""

import re


def softmax(x):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            low, high = (int(part, 16) for part in re.match("([0-9a-f]+)-([0-9a-f]+)", line).groups())
            memory.seek(low)
            memory.read(min(high - low, 4096))
    return x

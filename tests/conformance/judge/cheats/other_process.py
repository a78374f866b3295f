"""Starts a process that changes this one.

Published: gpu-mode, `pygpubench/exploits`: submission_ptrace.
https://github.com/gpu-mode/pygpubench/tree/main/exploits
"""

import subprocess
import sys

subprocess.run([sys.executable, "-c", "print('attached')"], check=False)


def softmax(x):
    return x

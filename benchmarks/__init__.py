"""Measurements of the kit's kernels beside torch, and of what comes before a kernel computes.

Each is a command with `--help`: `python -m benchmarks.run` measures and prints figures beside their targets, `.compare`
tells which figures got worse, `.counts` counts instructions, `.plots` draws speed over sizes, and `.document` writes
docs/performance.md.
"""

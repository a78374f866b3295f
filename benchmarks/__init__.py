"""Measurements of the kit's kernels beside NumPy and torch: `python -m benchmarks.run --help`."""

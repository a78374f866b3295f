"""`tpk judge`: judges a kernel from an untrusted source: whether it is right, computed by Triton, and how fast it is.

The candidate runs in separate processes, which never have access to the reference. The judge's process decides: it
compares results for fresh inputs with float64, and measures the time from handing out inputs to receiving results.
docs/judge.md describes what is detected by construction, what by inspection, and what is not guaranteed.
"""

"""`tpk judge`: is a kernel that a model or a stranger wrote right, made by Triton, and as fast as it says?

The candidate runs in processes of its own, which never see the reference. What decides is computed in the judge's
process: results of fresh inputs against float64, and the time between giving inputs out and getting results back.
docs/judge.md says what is caught by construction, what by inspection, and what is not promised.
"""

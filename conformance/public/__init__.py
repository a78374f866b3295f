"""The level `public`: kernels that others publish, unmodified, on inputs and against references of the suite's own.

A collection is a package of the index at a pinned release, with a table of entries (`collections/`). Entries run in
processes of their own, which see the package in a folder of its own and nothing else that is new.
"""

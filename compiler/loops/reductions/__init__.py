"""Reductions, scans and maps: operations whose region is a function of elements."""

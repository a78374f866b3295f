"""Loads, stores and atomics, and the analyses of what a store overwrites."""

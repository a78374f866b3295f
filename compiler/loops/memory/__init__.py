"""Loads, stores and atomics, and what must be known of memory before it is written."""

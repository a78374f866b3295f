"""Structured control flow, and calls of the host."""

"""Random Triton programs with an oracle: made from a seed, run, and shrunk where they fail."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import programs

__all__ = ["programs"]

"""Random Triton programs with an oracle: generated from a seed, run, and shrunk if they fail."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import programs

__all__ = ["programs"]

"""Errors in run folders and reports."""

from __future__ import annotations

from triton_porting_kit.errors import PortingKitError


class ReportError(PortingKitError):
    """A run folder or a report cannot be read, or reports cannot be merged."""

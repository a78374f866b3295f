"""Errors in what the judge is given, and in its environment."""

from __future__ import annotations

from triton_porting_kit.errors import PortingKitError


class TaskError(PortingKitError):
    """A task cannot be read, contradicts itself, or cannot tell a right candidate from a wrong one."""


class JudgeError(PortingKitError):
    """The judge itself cannot work here: a backend, a device or a process that it needs is not there."""


class EvidenceError(PortingKitError):
    """A folder of evidence cannot be read, or is not one."""

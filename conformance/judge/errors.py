"""Errors of the judge: in its inputs or in its environment."""

from __future__ import annotations

from triton_porting_kit.errors import PortingKitError


class TaskError(PortingKitError):
    """A task cannot be read, contradicts itself, or cannot distinguish right from wrong candidates."""


class JudgeError(PortingKitError):
    """The judge cannot work in this environment: a backend, a device or a process that it needs is missing."""


class EvidenceError(PortingKitError):
    """A folder of evidence cannot be read, or does not contain evidence."""

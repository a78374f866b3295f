"""The error of a command that was called wrongly."""

from __future__ import annotations


class UserError(Exception):
    """What the user typed cannot be done; the message says what can."""

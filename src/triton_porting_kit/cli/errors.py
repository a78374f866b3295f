"""The error of a command that was called wrongly."""

from __future__ import annotations


class UserError(Exception):
    """The command line is wrong. The message says what is wrong and what is valid."""

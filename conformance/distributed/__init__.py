"""Checks of groups of several ranks, each a process."""

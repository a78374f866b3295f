"""Which of several installed backends Triton shall use: the rule behind the adapter's ``is_active``."""

from __future__ import annotations

import os
import sys
from typing import Any

SELECTION_VARIABLE = "TRITON_DEFAULT_BACKEND"
"""Environment variable that picks a backend. Older releases of Triton do not read it: the kit does."""


def selected_backend() -> str | None:
    """The backend that the user asked for by name, if any."""
    return os.environ.get(SELECTION_VARIABLE) or None


def registered_drivers() -> dict[str, Any]:
    """The driver classes that Triton has found so far, by backend name; empty while it is still looking."""
    module = sys.modules.get("triton.backends")
    found = getattr(module, "backends", None) or {}
    return {name: backend.driver for name, backend in found.items()}


def reports_active(driver: Any) -> bool:
    """The facts that a driver reports; one that fails to answer is not active."""
    try:
        return bool(driver.is_active())
    except Exception:
        return False

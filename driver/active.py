"""Which of several installed backends Triton uses: the rule behind the adapter's ``is_active``."""

from __future__ import annotations

import os
import sys
from typing import Any

SELECTION_VARIABLE = "TRITON_DEFAULT_BACKEND"
"""The environment variable that selects a backend. The kit reads it because older releases of Triton do not."""


def selected_backend() -> str | None:
    """The backend that the user selected by name, if any."""
    return os.environ.get(SELECTION_VARIABLE) or None


def registered_drivers() -> dict[str, Any]:
    """The driver classes that Triton has found so far, by backend name; empty while it is still looking."""
    module = sys.modules.get("triton.backends")
    found = getattr(module, "backends", None) or {}
    return {name: backend.driver for name, backend in found.items()}


def reports_active(driver: Any) -> bool:
    """Whether a driver reports that it is active. A driver that raises is not."""
    try:
        return bool(driver.is_active())
    except Exception:
        return False

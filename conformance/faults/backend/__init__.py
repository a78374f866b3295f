"""The test backend: the CPU reference under a name of its own, with the fault that ``TPK_FAULT`` names.

Triton finds it as any other backend, where `triton_porting_kit.conformance.faults.plugin` has put its entry point.
"""

from __future__ import annotations

import os

from triton_porting_kit.conformance.faults.fault import CLEAN, Seams
from triton_porting_kit.conformance.faults.table import find

NAME = "faulty"
"""Of the backend and of its target."""

FAULT = find(os.environ.get("TPK_FAULT", CLEAN))
"""The fault of this process."""

SEAMS = Seams()
FAULT.apply(SEAMS)

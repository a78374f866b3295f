"""The test backend of runs that only compile: the AMD reference under a name of its own, with a fault in its binaries.

Triton finds it as any other backend, where `triton_porting_kit.conformance.faults.plugin` has put its entry point.
"""

from __future__ import annotations

import os

from triton_porting_kit.conformance.faults.fault import CLEAN, Seams
from triton_porting_kit.conformance.faults.plugin import GPU_NAME
from triton_porting_kit.conformance.faults.table import find

NAME = GPU_NAME
"""Of the backend and of its target."""

FAULT = find(os.environ.get("TPK_FAULT", CLEAN))
"""The fault of this process."""

SEAMS = Seams()
FAULT.apply(SEAMS)

"""The test backend of compile-only runs: the AMD reference under another name, with a fault in its binaries.

Triton finds it like any other backend, through the entry point that `triton_porting_kit.conformance.faults.plugin`
creates.
"""

from __future__ import annotations

import os

from triton_porting_kit.conformance.faults.fault import CLEAN, Seams
from triton_porting_kit.conformance.faults.plugin import GPU_NAME
from triton_porting_kit.conformance.faults.table import find

NAME = GPU_NAME
"""The name of the backend and of its target."""

FAULT = find(os.environ.get("TPK_FAULT", CLEAN))
"""The fault of this process."""

SEAMS = Seams()
FAULT.apply(SEAMS)

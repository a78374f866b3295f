"""Recording launches on disk, running them again, and writing them as C++ programs.

``TPK_CAPTURE`` or ``tpk capture`` records launches of any driver made with the kit. `read` reads a recorded launch,
`replay` runs it again on a device and compares the memory, and `emit_cpp` writes a C++ program that does the same.
"""

from triton_porting_kit.replay.capture import Capture, launches_in, read
from triton_porting_kit.replay.comparison import Difference
from triton_porting_kit.replay.emission import emit_cpp
from triton_porting_kit.replay.manifest import Manifest
from triton_porting_kit.replay.replaying import Result, open_device, replay
from triton_porting_kit.replay.runtimes import ReplayRuntime

__all__ = [
    "Capture",
    "Difference",
    "Manifest",
    "ReplayRuntime",
    "Result",
    "emit_cpp",
    "launches_in",
    "open_device",
    "read",
    "replay",
]

"""Launches recorded on disk, run again, and written as C++ programs.

``TPK_CAPTURE`` or ``tpk capture`` records launches of any driver made with the kit. `read` gives a recorded one, and
`replay` runs it again on a device and compares.
"""

from triton_porting_kit.replay.comparison import Difference
from triton_porting_kit.replay.manifest import Capture, Manifest, launches_in, read
from triton_porting_kit.replay.replaying import Result, open_device, replay

__all__ = ["Capture", "Difference", "Manifest", "Result", "launches_in", "open_device", "read", "replay"]

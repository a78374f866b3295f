"""Programs that use the host device in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# `run(stream)` launches 1,000 programs, `check(times)` that each has run so many times.
LAUNCH = """
import struct
from objects import kernel
from triton_porting_kit.driver.host import HostDevice, _host
device = HostDevice()
function = device.get_function(device.load_module(kernel("count"), "count"), "count")
out = device.memalloc(8000); device.memset(out, 0, 8000)
def run(stream=0):
    device.launch(function, (1000,), stream, struct.pack("Q", out))
def check(times):
    back = bytearray(8000); device.memcpy_dtoh(back, out)
    assert struct.unpack("1000q", back) == tuple(times * i for i in range(1, 1001)), back[:16]
"""

# `in_child(work)` calls it in a forked process.
FORK = """
import os
def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback; traceback.print_exc(); os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python of its own, which finds the helpers of this folder."""
    setup = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", setup + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )

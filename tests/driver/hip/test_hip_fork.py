"""HIP does not survive a fork: a child gets an error, and touches nothing of its parent's."""

from __future__ import annotations

import os
import subprocess
import sys

from standin_library import Standin

PROGRAM = """
import os
from triton_porting_kit.driver.hip import HipDevice, device_count
from triton_porting_kit.errors import DeviceLost

assert device_count() == 1
device = HipDevice()
address, stream = device.memalloc(64), device.create_stream()
child = os.fork()
if child == 0:
    for call in (lambda: device.memfree(address), lambda: device.synchronize(stream), device.reset, HipDevice):
        try:
            call()
        except DeviceLost as error:
            assert "forked" in str(error) and "spawn" in str(error)
        else:
            os._exit(1)
    assert device_count() == 1
    del device
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
device.memset(address, 1, 64, stream)
device.destroy_stream(stream)
device.memfree(address)
"""


def test_a_child_is_told(standin: Standin) -> None:
    environment = os.environ | {"TPK_HIP_LIBRARY": str(standin.path)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=120)

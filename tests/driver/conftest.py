from __future__ import annotations

from collections.abc import Iterator

import pytest

from triton_porting_kit.driver.host import HostDevice


@pytest.fixture
def device() -> Iterator[HostDevice]:
    """A fresh host device; what a test leaves allocated is a leak."""
    made = HostDevice(memory_limit=1 << 30)
    yield made
    made.synchronize()
    in_use, _, count, _ = made.memory_usage()
    assert (in_use, count) == (0, 0)

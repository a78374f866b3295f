"""Kernels in ``torch.profiler``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from host_backend import NAME
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def test_each_launch_is_an_event(chip: Any, tmp_path: Path) -> None:
    x = torch.randn(2000, 30, device=NAME)
    compiled = torch.compile(lambda x: (x * 2).sum())
    compiled(x)
    with profile(activities=BOTH) as found:
        compiled(x)
        x.t().contiguous()
    kernels = [event for event in found.events() if event.device_type == DeviceType.PrivateUse1]
    names = [kernel.name for kernel in kernels]
    assert "copy_kernel" in names
    assert any(name.startswith("triton_") for name in names)
    span = max(event.time_range.end for event in found.events())
    for kernel in kernels:
        assert 0 < kernel.device_time == kernel.time_range.elapsed_us() < span
    assert "copy_kernel" in found.key_averages().table()
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in trace if event.get("pid") == f"{NAME}:0"] == names


def test_kernels_of_the_cpu_are_not_the_devices(chip: Any) -> None:
    """Their launches call the same hooks."""
    compiled = torch.compile(lambda x: x * 2 + 1, options={"cpu_backend": "triton"})
    compiled(torch.ones(100))
    with profile(activities=BOTH) as found:
        compiled(torch.ones(100))
    assert not [event for event in found.events() if event.device_type == DeviceType.PrivateUse1]


def test_nothing_is_recorded_unless_asked(chip: Any) -> None:
    from triton import knobs

    with profile(activities=[ProfilerActivity.CPU]) as found:
        assert not knobs.runtime.launch_enter_hook.calls
        (torch.ones(3, device=NAME) + 1).cpu()
    assert not [event for event in found.events() if event.device_type == DeviceType.PrivateUse1]

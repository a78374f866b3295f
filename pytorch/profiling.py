"""Times of kernels in ``torch.profiler``.

Kineto takes such times from a library in C++. Here Triton's launch hooks record an event of the device before and
after each launch, and the launches are added to what the profiler has seen of the host.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch.accelerator import accelerator

_inductor: dict[Any, bool] = {}
"""Whether a loaded kernel of Inductor's is of the device, by its function. Launches of others use the active driver."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel."""

    name: str
    stream: int
    start_ns: int
    """Of the host's clock, since 1970."""
    duration_ns: int


def note_kernel(function: int, *, of_device: bool) -> None:
    """Remember whether a kernel that Inductor has loaded is of the device."""
    _inductor[function] = of_device


@dataclass
class Recorder:
    """Records the launches between `start` and `stop`."""

    _waiting: list[tuple[str, int, int, int]] = field(default_factory=list)
    _open: threading.local = field(default_factory=threading.local)

    def start(self) -> None:
        """Start recording."""
        from triton import knobs

        device = accelerator().device
        self._base = device.create_event()
        device.record_event(self._base)
        device.synchronize_event(self._base)
        self._base_ns = time.time_ns()
        knobs.runtime.launch_enter_hook.add(self._enter)
        knobs.runtime.launch_exit_hook.add(self._exit)

    def stop(self) -> list[Launch]:
        """Stop recording, wait for the launches, and return them."""
        from triton import knobs

        knobs.runtime.launch_enter_hook.remove(self._enter)
        knobs.runtime.launch_exit_hook.remove(self._exit)
        device, found = accelerator().device, []
        device.synchronize()
        for name, stream, start, end in self._waiting:
            since, duration = device.elapsed_time(self._base, start), device.elapsed_time(start, end)
            found.append(Launch(name, stream, self._base_ns + round(since * 1e6), round(duration * 1e6)))
            device.destroy_event(start)
            device.destroy_event(end)
        device.destroy_event(self._base)
        self._waiting.clear()
        return found

    def _enter(self, metadata: Any) -> None:
        from triton.runtime import driver

        self._open.launch = None
        about: dict[str, Any] = metadata.get() if metadata is not None else {}
        ours = _inductor.get(about.get("function", 0), driver.active is accelerator().driver)
        if not ours or "stream" not in about:
            return
        device = accelerator().device
        start = device.create_event()
        try:
            device.record_event(start, about["stream"])
        except InvalidArgument:  # a stream of another device
            device.destroy_event(start)
            return
        self._open.launch = (str(about["name"]), int(about["stream"]), start)

    def _exit(self, metadata: Any) -> None:
        launch = getattr(self._open, "launch", None)
        if launch is not None:
            device = accelerator().device
            end = device.create_event()
            device.record_event(end, launch[1])
            self._waiting.append((*launch, end))
            self._open.launch = None


# --- torch's profiler ------------------------------------------------------------------------------------


def register() -> None:
    """Let ``torch.profiler`` record launches if it is asked for ``ProfilerActivity.PrivateUse1``."""
    from torch._C._profiler import ProfilerState
    from torch.autograd import profiler

    profile: Any = profiler.profile
    start, end, parse, export = (
        profile._start_trace,
        profile.__exit__,
        profile._parse_kineto_results,
        profile.export_chrome_trace,
    )

    @functools.wraps(start)
    def _start_trace(self: Any) -> None:
        if self.use_device == accelerator().name:
            self.profiler_kind = ProfilerState.KINETO  # the other kind calls functions in C++
            self._recorder = Recorder()
            self._recorder.start()
        start(self)

    @functools.wraps(end)
    def __exit__(self: Any, *error: Any) -> Any:
        recorder = self.__dict__.pop("_recorder", None)
        if recorder is not None:
            self._launches = recorder.stop()
        return end(self, *error)

    @functools.wraps(parse)
    def _parse_kineto_results(self: Any, result: Any, *args: Any, **kwargs: Any) -> Any:
        launches = getattr(self, "_launches", ())
        begin = result.trace_start_ns()
        return parse(self, result, *args, **kwargs) + [
            _event(i, each, begin) for i, each in enumerate(launches)
        ]

    @functools.wraps(export)
    def export_chrome_trace(self: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        result = export(self, path, *args, **kwargs)
        if getattr(self, "_launches", ()) and str(path).endswith(".json"):
            _add_to_trace(Path(path), self._launches)
        return result

    profile._start_trace, profile.__exit__ = _start_trace, __exit__
    profile._parse_kineto_results, profile.export_chrome_trace = _parse_kineto_results, export_chrome_trace


def _event(number: int, launch: Launch, begin_ns: int) -> Any:
    from torch._C._autograd import DeviceType
    from torch.autograd.profiler_util import FunctionEvent

    start = (launch.start_ns - begin_ns) / 1000
    return FunctionEvent(
        id=-1 - number,
        name=launch.name,
        thread=launch.stream,
        start_us=start,
        end_us=start + launch.duration_ns / 1000,
        device_type=DeviceType.PrivateUse1,
        device_index=0,
        device_resource_id=launch.stream,
        use_device=accelerator().name,
        is_async=False,
        stack=[],
        overload_name="",
    )


def _add_to_trace(path: Path, launches: list[Launch]) -> None:
    trace = json.loads(path.read_text())
    base = int(trace.get("baseTimeNanoseconds", 0))
    trace["traceEvents"] += [
        {
            "ph": "X",
            "cat": "kernel",
            "name": launch.name,
            "pid": f"{accelerator().name}:0",
            "tid": f"stream {launch.stream}",
            "ts": (launch.start_ns - base) / 1000,
            "dur": launch.duration_ns / 1000,
        }
        for launch in launches
    ]
    path.write_text(json.dumps(trace))

"""Recording launches: wraps the backend's launcher while ``TPK_CAPTURE`` names a folder.

Besides that, only the processes of `tpk judge` import this module.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from dataclasses import replace
from typing import Any

from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.errors import CaptureWarning, DeviceError
from triton_porting_kit.launcher import ArgLayout
from triton_porting_kit.replay import journal
from triton_porting_kit.replay.folder import forget
from triton_porting_kit.replay.launches import Launch, LaunchRecord, TooLarge
from triton_porting_kit.replay.memory import TrackedMemory
from triton_porting_kit.replay.settings import Settings
from triton_porting_kit.toolchain import compat

LEADING = 9
"""The number of arguments of a launcher before the kernel's arguments."""

_memories: weakref.WeakKeyDictionary[Device, TrackedMemory] = weakref.WeakKeyDictionary()


class Fixed:
    """Settings that do not come from the environment, and the number of launches that were made under them."""

    settings: Settings | None = None
    launches = 0


def start(settings: Settings | None = None) -> None:
    """Record the launches of drivers created from now on, as long as ``TPK_CAPTURE`` names a folder.

    With `settings`, the environment is neither read nor changed, so the program cannot tell from it.
    """
    Fixed.settings = settings
    TritonDriver.on_open = _watch


def can_record(driver: object) -> bool:
    """Whether launches of this driver can be recorded: it is made with the kit."""
    return isinstance(driver, TritonDriver)


def _watch(device: Device) -> None:
    # Not earlier: when the kit is imported, Triton is still being imported.
    _wrap_launchers()
    _memories[device] = TrackedMemory(device)


@functools.cache
def _wrap_launchers() -> None:
    compat.wrap_launchers(RecordingLauncher)


class RecordingLauncher:
    """Wraps a launcher and records the inputs and the results of its launches."""

    def __init__(self, kernel: Any, launcher: Any) -> None:
        """`kernel`: Triton's compiled kernel."""
        # Triton's kernel holds a reference to this object; a reference back would be a cycle.
        self._kernel = weakref.ref(kernel)
        self._launcher = launcher
        layout = getattr(launcher, "layout", None)
        self._layout = layout if isinstance(layout, ArgLayout) else ArgLayout.from_source(kernel.src)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def __call__(self, *call: Any, **hidden: Any) -> Any:
        settings = Fixed.settings or Settings.from_environment()
        Fixed.launches += 0 not in call[:3]
        record = None if settings is None else self._begin(settings, call, hidden)
        if settings is None or record is None:
            return self._launcher(*call, **hidden)
        try:
            result = self._launcher(*call, **hidden)
            # Errors that the device reports later would not be recorded.
            record.launch.device.synchronize(record.launch.stream)
        except Exception as error:
            _end(record, error, settings)
            raise
        _end(record, None, settings)
        return result

    def _begin(
        self, settings: Settings, call: tuple[Any, ...], hidden: dict[str, Any]
    ) -> LaunchRecord | None:
        kernel, driver = self._kernel(), _active_driver()
        if kernel is None or driver is None:
            return None
        memory = _memories.get(driver.device)
        if memory is None or len(call) < LEADING:
            return None
        if not settings.judged:
            return self._begin_chosen(settings, kernel, driver, memory, call, hidden)
        if not journal.is_judged(settings):
            return None
        why = "" if settings.wants(kernel.name) else journal.NOT_CHOSEN
        why = why or ("" if journal.is_sampled(settings, kernel.name) else journal.NOT_SAMPLED)
        record = None
        if not why:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", CaptureWarning)
                try:
                    record = self._begin_chosen(settings, kernel, driver, memory, call, hidden)
                except TooLarge as error:
                    why = f"{journal.TOO_LARGE}: {error}"
            why = (
                why or "; ".join(str(one.message) for one in said) or "nothing is launched: the grid is empty"
            )
        if record is None:
            journal.add(settings, journal.Entry(kernel.name, why=why))
        return record

    def _begin_chosen(
        self,
        settings: Settings,
        kernel: Any,
        driver: TritonDriver,
        memory: TrackedMemory,
        call: tuple[Any, ...],
        hidden: dict[str, Any],
    ) -> LaunchRecord | None:
        if not settings.wants(kernel.name):
            return None
        settings.make_folder()
        try:
            launch = Launch.of(kernel, driver, self._layout, call[:LEADING], call[LEADING:], hidden)
            if launch is None:
                return None
            guard = getattr(self._launcher, "guard", None)
            if guard is not None and not guard.fits(launch.block, launch.grid):
                launch = replace(launch, kernel=guard.other_kernel())
            return LaunchRecord.begin(launch, memory, settings)
        except (DeviceError, TooLarge):
            raise  # An error of earlier work on the stream, which the launch itself would raise too.
        except Exception as error:
            _warn(f"a launch of kernel '{kernel.name}' is not recorded: {type(error).__name__}: {error}")
            return None


def _end(record: LaunchRecord, error: Exception | None, settings: Settings) -> None:
    try:
        record.end(error)
    except Exception as trouble:
        _warn(f"the memory after the launch is not recorded in {record.folder}: {trouble}")
    if settings.judged:
        journal.add(settings, journal.Entry(record.launch.kernel.name, folder=record.folder.name))
        journal.wait(settings, record.folder)
        forget(settings.folder)


def _active_driver() -> TritonDriver | None:
    from triton.runtime import driver

    return driver.active if isinstance(driver.active, TritonDriver) else None


def _warn(text: str) -> None:
    warnings.warn(text, CaptureWarning, stacklevel=4)

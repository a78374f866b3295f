"""The table of hooks agrees with `Device`, and a hook that is missing says so where it is called."""

from __future__ import annotations

import fnmatch
import inspect

import pytest

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.driver import HOOKS, Device, Hook, name_missing_hooks
from triton_porting_kit.errors import DeviceError, MissingHook


class Partial(Device):
    """A device with one hook."""

    def memalloc(self, size: int, alignment: int = 64) -> int:
        return 64


def test_the_table_has_every_hook_of_a_device() -> None:
    assert {name for name, hook in HOOKS.items() if not hook.optional} == Device.__abstractmethods__
    assert {name for name, _ in inspect.getmembers(Device, inspect.isfunction) if name[0] != "_"} == {*HOOKS}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_every_pattern_names_checks(hook: Hook) -> None:
    names = [
        name for level in ("registration", "runtime") for name in mandatory.names(level, (3, 9), kit=True)
    ]
    assert hook.checks
    for pattern in hook.checks:
        assert fnmatch.filter(names, pattern), pattern


def test_a_missing_hook_raises_where_it_is_called() -> None:
    device = Partial()  # type: ignore[abstract]
    assert device.memalloc(5) == 64
    assert device.launch_entry() is None
    with pytest.raises(MissingHook) as caught:
        device.memset(64, 0, 5)
    message = str(caught.value)
    hook = HOOKS["memset"]
    assert "Partial has no hook `memset`" in message
    for part in (hook.contract, hook.page, hook.checks[0]):
        assert part in message
    assert isinstance(caught.value, DeviceError)
    assert isinstance(caught.value, NotImplementedError)


def test_every_missing_hook_is_named() -> None:
    device = Partial()  # type: ignore[abstract]
    for name, hook in HOOKS.items():
        if name != "memalloc" and not hook.optional:
            with pytest.raises(MissingHook, match=f"`{name}`"):
                getattr(device, name)()


def test_a_hook_may_be_added_further_down() -> None:
    class Whole(Partial):
        def memfree(self, addr: int) -> None:
            pass

    Whole().memfree(64)  # type: ignore[abstract]
    with pytest.raises(MissingHook, match="Whole has no hook `memset`"):
        Whole().memset(64, 0, 1)  # type: ignore[abstract]


def test_a_class_between_keeps_what_a_hook_does_for_all() -> None:
    class Between(Partial):
        pass

    class Whole(Between):
        def reset(self) -> None:
            super().reset()

    device = Whole()  # type: ignore[abstract]
    told: list[int] = []
    device.on_reset = lambda: told.append(device.generation)
    device.reset()
    assert (device.generation, device.on_reset, told) == (1, None, [1])
    with pytest.raises(MissingHook, match="Between has no hook `reset`"):
        Between().reset()  # type: ignore[abstract]


def test_a_class_of_an_extension_has_its_missing_hooks_named() -> None:
    class Native:
        def memalloc(self, size: int, alignment: int) -> int:
            return 128

    name_missing_hooks(Native)
    assert Native().memalloc(1, 64) == 128
    with pytest.raises(MissingHook, match="Native has no hook `memcpy_htod`"):
        Native().memcpy_htod(128, b"", 0)  # type: ignore[attr-defined]

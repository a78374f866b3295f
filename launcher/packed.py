"""The packed launcher: a prebuilt native routine that interprets a plan of the signature. No compiler at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triton_porting_kit.launcher import _packed
from triton_porting_kit.launcher.entry import LaunchEntry, required
from triton_porting_kit.launcher.guard import Guard
from triton_porting_kit.launcher.layout import ArgLayout, ArgSlot
from triton_porting_kit.launcher.signature import Argument

# Kinds of plan nodes, as numbered in the native routine.
_CONSTEXPR, _SCALAR, _TUPLE, _DESCRIPTOR = range(4)


class PackedLauncher(_packed.Launcher):
    """Launches one kernel on a device, called as Triton calls a launcher:

    ``launcher(gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata, launch_enter_hook,
    launch_exit_hook, *args, **hidden)``, with the values of `hidden` arguments as keywords.

    The constructor raises `MissingHook` if `entry` is None. A call raises `GridError` and `SignatureError` for what
    cannot be launched, and the device's typed errors; it passes on what a hook raises. Any number of threads may call
    it at once. With `on_host`, kernels run on the host: torch tensors of other devices are refused, whose addresses
    mean nothing there.
    """

    def __init__(
        self,
        src: Any,
        metadata: Any,
        entry: LaunchEntry | None,
        *,
        hidden: Mapping[str, str] | None = None,
        on_host: bool = False,
    ) -> None:
        entry = required(entry)
        self.layout = ArgLayout.from_source(src, hidden)
        self.metadata = metadata
        self.guard = Guard(src, metadata, self.layout)
        self.entry = self.guard.entry(entry)  # the device must outlive its launchers
        signature = self.layout.signature
        slots = iter(self.layout.slots)
        super().__init__(
            _packed.bind(
                [_node(argument, slots, on_host) for argument in signature.arguments],
                _plain(self.layout.hidden, on_host),
                self.layout.size,
                ", ".join(argument.name for argument in signature.arguments),
                ", ".join(slot.name for slot in self.layout.hidden),
                self.entry.function,
                self.entry.context,
            )
        )


def _node(argument: Argument, slots: Any, on_host: bool) -> tuple[int, str, str, list[Any], list[Any]]:
    own = _plain([next(slots) for _ in argument.parameters], on_host)
    members = [_node(member, slots, on_host) for member in argument.members]
    if argument.is_tuple:
        operation = _TUPLE
    elif argument.is_descriptor:
        operation = _DESCRIPTOR
    else:
        operation = _SCALAR if own else _CONSTEXPR
    return operation, argument.name, argument.type, own, members


def _plain(slots: Sequence[ArgSlot], on_host: bool) -> list[tuple[int, int, str, str, bool]]:
    return [(slot.kind, slot.offset, slot.name, slot.type, on_host) for slot in slots]

"""The table of a device's hooks: of each its contract in a sentence, and the conformance checks that exercise it.

What names a hook reads it here: the error of a hook that is not written, `tpk status`, and the pages and comments of
generated repositories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.errors import MissingHook


@dataclass(frozen=True)
class Hook:
    """A method of `Device`."""

    name: str
    step: str
    """The step of a port that it belongs to, an anchor of ``docs/PORTING.md`` in a generated repository."""
    contract: str
    """What it must do, in a sentence."""
    checks: tuple[str, ...]
    """Patterns for names of checks."""
    optional: bool = False

    @property
    def page(self) -> str:
        """Where a generated repository says more."""
        return f"docs/PORTING.md#{self.step}"


HOOKS = {
    hook.name: hook
    for hook in (
        Hook(
            "properties",
            "properties",
            "Says what the device is, always the same.",
            ("runtime/device/propert*", "registration/discovery/target*"),
        ),
        Hook(
            "memalloc",
            "memory",
            "Allocates bytes at a multiple of an alignment and returns their address.",
            (
                "runtime/memory/size-*",
                "runtime/memory/alignment-*",
                "runtime/memory/too-much-*",
                "runtime/memory/exhaustion",
            ),
        ),
        Hook(
            "memfree",
            "memory",
            "Frees what memalloc returned, after the work in flight that uses it.",
            ("runtime/memory/free-*", "runtime/memory/double-free", "runtime/streams/free-waits"),
        ),
        Hook(
            "memcpy_htod",
            "copies",
            "Copies a contiguous host buffer to a device address, behind what is on the stream.",
            ("runtime/copies/htod-*",),
        ),
        Hook(
            "memcpy_dtoh",
            "copies",
            "Fills a contiguous writable host buffer from a device address, behind what is on the stream.",
            ("runtime/copies/dtoh-*",),
        ),
        Hook(
            "memcpy_dtod",
            "copies",
            "Copies bytes within the device, behind what is on the stream.",
            ("runtime/copies/dtod-*",),
        ),
        Hook(
            "memset",
            "copies",
            "Sets bytes of the device to a value from 0 to 255, behind what is on the stream.",
            ("runtime/copies/memset-*", "runtime/streams/memset-after-kernel"),
        ),
        Hook(
            "create_stream",
            "streams",
            "Makes a stream, whose work runs in order and independently of all other streams.",
            ("runtime/streams/handles", "runtime/streams/overlap*", "runtime/streams/asynchronous"),
        ),
        Hook(
            "destroy_stream",
            "streams",
            "Lets the stream's work end, destroys the stream, and raises a failure that nothing has raised yet.",
            ("runtime/streams/destroy*", "runtime/device/destroy-raises-failure"),
        ),
        Hook(
            "synchronize",
            "streams",
            "Waits for all work of a stream, or of the device, and raises its first failure, once.",
            ("runtime/streams/synchronize-*", "runtime/device/*failure*"),
        ),
        Hook(
            "create_event",
            "events",
            "Makes an event that stands for nothing yet.",
            ("runtime/events/handles", "runtime/events/unrecorded-*"),
        ),
        Hook(
            "destroy_event",
            "events",
            "Destroys an event; who waits for it goes on waiting for what was recorded.",
            ("runtime/events/destroyed-*", "runtime/events/churn"),
        ),
        Hook(
            "record_event",
            "events",
            "Lets an event stand for the work that is on a stream now.",
            ("runtime/events/record-again", "runtime/events/wait-keeps-its-point"),
        ),
        Hook(
            "wait_event",
            "events",
            "Lets later work of a stream start after what an event stands for now.",
            ("runtime/events/wait*", "runtime/events/fan-in"),
        ),
        Hook(
            "synchronize_event",
            "events",
            "Waits on the host for what an event stands for.",
            ("runtime/events/synchronize", "runtime/events/unrecorded-synchronize"),
        ),
        Hook(
            "elapsed_time",
            "events",
            "Gives the milliseconds between two events that were recorded and reached.",
            ("runtime/events/*elapsed-*",),
        ),
        Hook(
            "load_module",
            "modules",
            "Loads what the compiler's last stage made, and refuses anything else with InvalidModule.",
            ("runtime/modules/load*", "runtime/modules/many", "runtime/modules/[!gmu]*-refused"),
        ),
        Hook(
            "unload_module",
            "modules",
            "Unloads a module after the launches of its kernels that are in flight.",
            ("runtime/modules/unload*",),
        ),
        Hook(
            "get_function",
            "modules",
            "Gives the handle of a module's kernel for launches.",
            ("runtime/modules/missing-function-refused", "runtime/modules/through-triton"),
        ),
        Hook(
            "launch",
            "launches",
            "Runs a kernel for every program of a grid, with a copy of the packed argument block.",
            ("runtime/modules/grid-*", "runtime/modules/unload-then-launch-refused"),
        ),
        Hook(
            "launch_entry",
            "launches",
            "Gives the address of launch in native code, which launchers call without Python.",
            ("runtime/launches/*", "runtime/grids/*", "runtime/arguments/*"),
            optional=True,
        ),
        Hook(
            "reset",
            "reset",
            "Brings the device back to its first state: memory, streams, events and modules are gone.",
            ("runtime/device/reset-*",),
        ),
    )
}
"""By name, in the order in which a port replaces them."""


def name_missing_hooks(cls: type) -> None:
    """Give a class in place of each hook that it has not one that raises `MissingHook`.

    `Device` does so for its sub-classes. Call it for the class of an extension module whose methods have the hooks'
    names, so that one that is missing there is named, too.
    """
    for name, hook in HOOKS.items():
        found = getattr(cls, name, None)
        if not hook.optional and _is_missing(found):
            setattr(cls, name, _missing(hook, f"{cls.__module__}.{cls.__qualname__}", found))


def _is_missing(method: Any) -> bool:
    abstract = getattr(method, "__isabstractmethod__", False)
    return method is None or abstract or hasattr(method, "missing_hook")


def _missing(hook: Hook, owner: str, base: Callable[..., Any] | None) -> Callable[..., Any]:
    def missing(*arguments: Any, **keywords: Any) -> Any:
        if base and not _is_missing(getattr(type(arguments[0]), hook.name)):
            return base(*arguments, **keywords)  # a sub-class has the hook, and asks by `super()`
        raise MissingHook(
            f"{owner} has no hook `{hook.name}`. What it must do: {hook.contract} {hook.page} says how to write it; "
            f"`tpk conform --select '{hook.checks[0]}'` tries it"
        )

    missing.__name__ = hook.name
    missing.missing_hook = True  # type: ignore[attr-defined]
    return missing

"""The table of device hooks: the contract of each in one sentence, and the conformance checks that exercise it.

`Device` declares each hook at its definition. Everything that lists hooks reads this table: the error of a missing
hook, `tpk status`, and the tests of generated repositories, of the planted faults and of the stubs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from triton_porting_kit.errors import MissingHook


@dataclass(frozen=True)
class Hook:
    """A method of `Device`."""

    name: str
    step: str
    """The step of a port that it belongs to: an anchor of ``docs/PORTING.md`` in a generated repository."""
    contract: str
    """What the hook must do, in one sentence."""
    checks: tuple[str, ...]
    """Patterns of the names of checks."""
    optional: bool = False

    @property
    def page(self) -> str:
        """The page of a generated repository that says more."""
        return f"docs/PORTING.md#{self.step}"


HOOKS: dict[str, Hook] = {}
"""By name, in the order in which a port implements them. `Device` registers them with `hook`."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def hook(step: str, contract: str, *checks: str) -> Callable[[_Method], _Method]:
    """Declare a method of `Device` as a hook, optional unless it is abstract. The arguments are those of `Hook`."""

    def declare(method: _Method) -> _Method:
        optional = not getattr(method, "__isabstractmethod__", False)
        HOOKS[method.__name__] = Hook(method.__name__, step, contract, checks, optional)
        return method

    return declare


def name_missing_hooks(cls: type) -> None:
    """Give a class a method that raises `MissingHook` for each hook that it lacks.

    `Device` does so for its sub-classes. Call it for the class of an extension module whose methods have the hooks'
    names, so that missing ones are named, too.
    """
    for name, declared in HOOKS.items():
        found = getattr(cls, name, None)
        if not declared.optional and _is_missing(found):
            setattr(cls, name, _missing(declared, f"{cls.__module__}.{cls.__qualname__}", found))


def _is_missing(method: Any) -> bool:
    abstract = getattr(method, "__isabstractmethod__", False)
    return method is None or abstract or hasattr(method, "missing_hook")


def _missing(hook: Hook, owner: str, base: Callable[..., Any] | None) -> Callable[..., Any]:
    def missing(*arguments: Any, **keywords: Any) -> Any:
        if base and not _is_missing(getattr(type(arguments[0]), hook.name)):
            return base(*arguments, **keywords)  # a sub-class has the hook, and calls `super()`
        raise MissingHook(
            f"{owner} has no hook `{hook.name}`. What it must do: {hook.contract} {hook.page} says how to write it; "
            f"`tpk conform --select '{hook.checks[0]}'` tries it"
        )

    missing.__name__ = hook.name
    missing.missing_hook = True  # type: ignore[attr-defined]
    return missing

"""Several backends in one environment: one is active, and none claims another's target."""

from __future__ import annotations

from functools import partial

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.registration.support import facts_of_fresh_process, registered, target_of

CHECKS = Checks("registration/coexistence")

_TARGETS: dict[str, tuple[str, int | str, int]] = {
    "cuda": ("cuda", 90, 32),
    "hip": ("hip", "gfx942", 64),
    "cpu": ("cpu", "x86_64", 1),
    "unheard-of": ("tpk_no_such_chip", "one", 1),
    "empty": ("", "", 1),
}


def _foreign(context: Context, name: str) -> None:
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget

    target = GPUTarget(*_TARGETS[name])
    own = registered(context).compiler
    takes = own.supports_target(target)
    if target.backend == target_of(context).backend:
        context.expect(takes is True, "it takes targets of its own name", repr(takes))
    else:
        context.expect(takes is False, f"it does not take {target}", repr(takes))
    found = sorted(other for other, item in backends.items() if item.compiler.supports_target(target))
    context.expect(len(found) <= 1, f"at most one backend takes {target}", str(found))


for _name in _TARGETS:
    CHECKS.add(
        f"target-{_name}",
        f"The backend accepts the target `{_name}` only if it is its own, and then no other backend does.",
        partial(_foreign, name=_name),
        compiles=True,
    )


@CHECKS.check("names", "No other backend has this backend's name or classes.", compiles=True)
def _names(context: Context) -> None:
    from triton.backends import backends

    own = registered(context)
    others = {name: item for name, item in backends.items() if name != context.session.backend}
    shared = [
        name for name, item in others.items() if item.compiler is own.compiler or item.driver is own.driver
    ]
    context.expect(not shared, "no other name has its classes", str(shared))


@CHECKS.check("chosen", "TRITON_DEFAULT_BACKEND selects the backend in a fresh process.")
def _chosen(context: Context) -> None:
    found = facts_of_fresh_process(context.session.backend, True)
    own = registered(context).driver
    wanted = f"{own.__module__}.{own.__qualname__}"
    context.expect(
        found["driver"] == wanted, f"the active driver is {wanted}", f"{found['driver']} {found['error']}"
    )
    context.expect(
        context.session.backend in found["active"], "it reports that it is active", str(found["active"])
    )


@CHECKS.check(
    "one-active",
    "If no backend is selected, exactly one reports that it is active, so that Triton can start.",
)
def _one_active(context: Context) -> None:
    found = facts_of_fresh_process(context.session.backend, False)
    context.expect(len(found["active"]) == 1, "one driver is active", f"{found['active']} {found['error']}")
    context.expect(found["driver"] != "", "Triton has a driver", found["error"])


@CHECKS.check("others-stay", "The other backends that are installed are found as well.")
def _others_stay(context: Context) -> None:
    from importlib.metadata import entry_points

    names = sorted({point.name for point in entry_points(group="triton.backends")})
    found = facts_of_fresh_process(context.session.backend, True)
    context.expect(
        found["registered"] == names, f"registered are {', '.join(names)}", str(found["registered"])
    )


@CHECKS.check(
    "others-silent",
    "Asking the other backends whether they are active raises no error because of this one.",
)
def _others_silent(context: Context) -> None:
    from triton.backends import backends

    answers = {name: item.driver.is_active() for name, item in backends.items()}
    context.expect(bool(answers[context.session.backend]), "this one is active", str(answers))


@CHECKS.check("put-back", "Another driver can be made active temporarily, and then this one again.")
def _put_back(context: Context) -> None:
    from triton.runtime import driver

    own = driver.active
    driver.set_active(object())
    try:
        context.expect(driver.active is not own, "another is active")
    finally:
        driver.set_active(own)
    context.expect(driver.active.get_current_target() == target_of(context), "its target is what it was")

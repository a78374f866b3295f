"""`Context`: the interface of the suite to the body of a check, which also collects the evidence."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray, Home, OutOfBounds
from triton_porting_kit.conformance.comparison import Comparison
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.seeds import seed_of
from triton_porting_kit.conformance.stages import OUT_OF_BOUNDS, of_exception
from triton_porting_kit.conformance.types import KINDS, Array, Kind

BY_BACKEND = "raised_by_backend"
"""The attribute of an exception that native code raised for the backend, in a frame of the suite."""


class Failed(Exception):
    """Raised by a context when the evidence shows that the check failed. Bodies must not catch it."""


@dataclass(frozen=True)
class Session:
    """The state that all checks of a worker share."""

    backend: str
    """The name of the backend's entry point."""
    memory: MemoryAccess
    seed: int = 0
    capabilities: Any = None
    """The profile's `Capabilities`; None if nothing is declared."""
    scratch: str = ""
    """A private folder for files of checks."""

    @property
    def target(self) -> Any:
        """Triton's target that kernels are compiled for."""
        return self.driver.get_current_target()

    @property
    def driver(self) -> Any:
        """Triton's active driver."""
        from triton.runtime import driver

        return driver.active

    def seed_of(self, check: str) -> int:
        """The seed of the check with this name."""
        return seed_of(self.seed, check)


@dataclass
class Context:
    """One run of one check."""

    session: Session
    check: str
    """Name of the check."""
    evidence: list[dict[str, Any]] = field(default_factory=list)
    _arrays: list[GuardedArray] = field(default_factory=list)

    # --- environment -------------------------------------------------------------------------------

    @property
    def memory(self) -> MemoryAccess:
        return self.session.memory

    @property
    def device(self) -> Any:
        """The kit's `Device`, for checks that declare `kit_device`."""
        return self.session.memory.kit_device

    @property
    def runs(self) -> bool:
        """Whether kernels run. Otherwise they are only compiled, and nothing is compared."""
        return self.session.memory.runs

    @property
    def seed(self) -> int:
        return self.session.seed_of(self.check)

    @cached_property
    def random(self) -> np.random.Generator:
        """The generator of all random data of the check."""
        return np.random.default_rng(self.seed)

    @property
    def driver(self) -> Any:
        """Triton's active driver."""
        return self.session.driver

    # --- arrays --------------------------------------------------------------------------------------

    def array(self, values: Array, kind: Kind | str) -> GuardedArray:
        """Create an array on the device with values of a type or its name in `KINDS`. Its guard zones are checked when
        the check ends."""
        return self.keep(GuardedArray.of(self.memory, _kind(kind), values, _Beside(self)))

    def empty(self, shape: Sequence[int], kind: Kind | str) -> GuardedArray:
        """Create an array on the device, filled with a pattern that is unlikely to be a right result."""
        return self.keep(GuardedArray(self.memory, _kind(kind), shape, _Beside(self)))

    def keep(self, array: GuardedArray) -> GuardedArray:
        """Also check an array's guard zones when the check ends."""
        self._arrays.append(array)
        return array

    def read(self, array: GuardedArray) -> Array:
        """Read the elements of an array after all work in flight."""
        self.memory.synchronize()
        return array.read()

    # --- evidence ------------------------------------------------------------------------------------

    def compare(self, what: str, comparison: Comparison) -> None:
        """Record a comparison. Raises `Failed` if an element is wrong. Does nothing if kernels do not run."""
        if self.runs:
            self._record(comparison.evidence(what), not comparison.differ)

    def expect(self, condition: bool, what: str, message: str = "", *, stage: str = "wrong result") -> None:
        """Record whether a condition holds, and if not, what was found instead. Raises `Failed` if it does not hold."""
        item: dict[str, Any] = {"kind": "expectation", "what": what, "holds": bool(condition)}
        if not condition:
            item |= {"message": message, "stage": stage}
        self._record(item, bool(condition))

    def refuses(
        self, what: str, call: Callable[[], Any], types: type[BaseException] | tuple[type[BaseException], ...]
    ) -> BaseException | None:
        """Expect `call()` to raise one of `types`; returns the exception."""
        wanted = types if isinstance(types, tuple) else (types,)
        names = " or ".join(kind.__name__ for kind in wanted)
        try:
            result = call()
        except wanted as error:
            self.expect(True, f"{what} raises {names}")
            return error
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            self.expect(
                False, f"{what} raises {names}", f"it raised {found[:500]}", stage=of_exception(error)
            )
        else:
            self.expect(False, f"{what} raises {names}", f"it returned {result!r:.200}")
        return None

    def _record(self, item: dict[str, Any], holds: bool) -> None:
        self.evidence.append(item)
        if not holds:
            raise Failed(item.get("message") or item["what"])

    def check_guards(self) -> None:
        """Check the guard zones of all arrays of the check."""
        if not self.runs:
            return
        for array in self._arrays:
            try:
                array.check_guards()
            except OutOfBounds as error:
                self.expect(False, "nothing is written outside of arrays", str(error), stage=OUT_OF_BOUNDS)
        if self._arrays:
            self.expect(True, f"the guard zones of {len(self._arrays)} arrays are untouched")


class _Beside(Home):
    """Registers arrays that host functions of kernels allocate with the check."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.memory)
        self._context = weakref.ref(context)  # so that memory is freed when the check ends

    def empty(self, kind: Kind, shape: Sequence[int]) -> GuardedArray:
        context = self._context()
        return super().empty(kind, shape) if context is None else context.empty(shape, kind)


def _kind(kind: Kind | str) -> Kind:
    return KINDS[kind] if isinstance(kind, str) else kind

"""Data classes that are made in a fifth of the time, for modules that every compilation imports.

`dataclasses.dataclass` compiles the source of each method of a class. Here it does so for the constructor only;
comparing, hashing and printing are functions that all classes share. That a class is frozen, only the type checker
sees; so instances are made faster, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter

    def dataclass(cls=None, /, *, eq=True, repr=True, frozen=False, **others):
        """`dataclasses.dataclass`, with the same parameters."""

        def made(cls):
            own = vars(cls).copy()
            cls = dataclasses.dataclass(eq=False, repr=False, **others)(cls)
            fields = dataclasses.fields(cls)
            if repr and "__repr__" not in own:
                cls.__repr__ = _repr
            if eq:
                names = [field.name for field in fields if field.compare]
                # With one name, `attrgetter` returns no tuple; tuples of equal identity are equal, even of NaN.
                cls._compared = attrgetter(*names, *names[:1]) if names else type
                if "__eq__" not in own:
                    cls.__eq__ = _eq
                if own.get("__hash__") is None:
                    cls.__hash__ = _hash if frozen else None
            return cls

        return made if cls is None else made(cls)

    def _repr(self):
        values = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
        return f"{type(self).__qualname__}({', '.join(values)})"

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._compared(self) == self._compared(other)

    def _hash(self):
        return hash(self._compared(self))

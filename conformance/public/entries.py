"""`Collection` and `Entry`: a package of Triton kernels, and what is called of it."""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

Input = Callable[[Any, Any], Any]
"""Makes a tensor of the CPU from a `torch.Generator` and the type of the case."""
Function = Callable[..., Any]
"""Takes the inputs by name; returns a tensor, or tensors in lists and tuples."""

FLOATS = ("float32", "bfloat16")
WIDE = ("float32",)
HALF = ("bfloat16", "float16")
GRADIENT = "gradient"
VERDICTS = {
    "right": "the results are those of float64, within the tolerance",
    "kit": "wrong or refused, and the kit has to mend it",
    "package": "the package itself refuses, asserts or is wrong",
    "release": "the package needs another release of Triton, torch or a library",
    "gpu": "the package needs a feature of a GPU",
    "crash": "the process died",
    "timeout": "no result in time",
    "harness": "the kit's own reference or table is wrong",
}
"""What is said of an entry."""


class Lazy:
    """A module that is imported when something of it is used: tables are read where their packages are not."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, item: str) -> Any:
        module = importlib.import_module(self._name)
        name = f"{self._name}.{item}"
        if not hasattr(module, item) and importlib.util.find_spec(name):
            return Lazy(name)
        found = getattr(module, item)
        return Lazy(found.__name__) if isinstance(found, ModuleType) else found


@dataclass(frozen=True)
class Known:
    """A verdict that someone found by looking, for what no rule can tell: wrong results of the package's own."""

    verdict: str
    reason: str
    """What is wrong, where, and how that was decided."""


@dataclass(frozen=True)
class Entry:
    """A public function or kernel on one class of shapes."""

    name: str
    call: Function
    """The package's function."""
    reference: Function
    """What it computes, in operations of torch. It takes float64 and gives the expected values; in the type of the
    case it is what the time is compared with."""
    inputs: Mapping[str, Input]
    types: tuple[str, ...] = FLOATS
    gradients: tuple[str, ...] = ()
    """Inputs whose gradients are compared, too; none: there is no case for gradients."""
    large: Mapping[str, Input] = field(default_factory=dict)
    """Inputs of a size at which time is measured: of some milliseconds, so that calls do not count. None: it is not."""
    eager: bool = True
    """Whether the reference is what a user of torch would write, so that times may be compared."""
    steps: int = 0
    """Results are integers that were rounded: by how many they may be off."""
    tolerance: float = 1.0
    """A factor for the tolerance of the type, where `because` says why."""
    because: str = ""
    slow: str = ""
    """Why it takes more than 1.5 times as long as torch eager, where it does."""
    known: Mapping[str, Known] = field(default_factory=dict)
    """By a pattern for the variant, such as ``*-gradient``."""
    seconds: float = 120.0
    """Time limit of one case, on a processor that it has for itself: time that others use does not count."""


@dataclass(frozen=True)
class Collection:
    """A package at a pinned release."""

    name: str
    package: str
    """Its name on the index."""
    version: str
    licence: str
    needs: str
    """The releases of Triton and torch that it asks for."""
    entries: tuple[Entry, ...]
    triton: str = ""
    """The release of Triton that it runs with, where the installed one is too new for it; empty: the installed one."""
    requires: tuple[str, ...] = ()
    """Pinned packages that it imports, beside torch, Triton and NumPy."""
    source: bool = False
    """Whether the source archive is unpacked, not built: its wheel would be compiled for a GPU, or there is none."""
    folder: str = ""
    """The folder of the unpacked archive, or of a user's checkout, that is to be imported from."""
    stubs: tuple[str, ...] = ()
    """Modules that it imports and does not need for these entries: they are replaced by empty ones."""
    bare: tuple[str, ...] = ()
    """Packages of it whose own ``__init__`` is not run, because it imports what is not needed for these entries."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it reads."""
    cuda: str = ""
    """The release of CUDA that `torch.version.cuda` names where `cuda` is not CUDA, for packages that ask for one."""
    module: str = ""
    """The module whose `COLLECTION` it is; empty: the one of its name among `collections`."""
    arranged: str = ""
    """What had to be arranged so that it can be imported, as text for the page."""

    @property
    def place(self) -> str:
        """The module whose `COLLECTION` it is."""
        return self.module or f"{__package__}.collections.{self.name}"


@dataclass(frozen=True)
class Case:
    """One entry on one type, forward or with gradients: an entry point, as the page counts them."""

    collection: Collection
    entry: Entry
    type: str
    gradient: bool = False

    @property
    def variant(self) -> str:
        """Type and direction."""
        return f"{self.type}-{GRADIENT}" if self.gradient else self.type

    @property
    def name(self) -> str:
        """The name of its check."""
        return f"public/{self.collection.name}/{self.entry.name}-{self.variant}"

    @property
    def known(self) -> Known | None:
        """The verdict that was found by looking, if there is one."""
        found = (known for p, known in self.entry.known.items() if fnmatch.fnmatchcase(self.variant, p))
        return next(found, None)


def cases_of(collection: Collection) -> Iterator[Case]:
    """The cases of a collection, in order."""
    for entry in collection.entries:
        for name in entry.types:
            yield Case(collection, entry, name)
            if entry.gradients:
                yield Case(collection, entry, name, gradient=True)


class Table:
    """Collects the entries of a collection."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def add(
        self, name: str, call: Function, reference: Function, inputs: Mapping[str, Input], **fields: Any
    ) -> None:
        """Add an entry. `fields`: those of `Entry`."""
        self._entries.append(Entry(name, call, reference, dict(inputs), **fields))

    def entries(self) -> tuple[Entry, ...]:
        """All of them, in order."""
        return tuple(self._entries)

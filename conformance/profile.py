"""`Profile`: a vendor's declarations about a backend, in ``conformance.toml``."""

from __future__ import annotations

import fnmatch
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.essential import ESSENTIAL
from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.conformance.record import Listing
from triton_porting_kit.errors import PortingKitError

FILE_NAME = "conformance.toml"
LISTS = ("unsupported", "expected_failures", "waivers")


class ProfileError(PortingKitError):
    """A profile cannot be read, or is invalid."""


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a chip. None means no limit."""

    types: tuple[str, ...] | None = None
    """Element types, by their names in `triton_porting_kit.conformance.types.KINDS`."""
    atomics: tuple[str, ...] | None = None
    """Element types of atomic operations."""
    features: tuple[str, ...] | None = None
    """Features that some chips lack, from `FEATURES`."""
    maximum_tile: int | None = None
    """Elements of the largest tile."""
    torch_dtypes: tuple[str, ...] | None = None
    """Types of torch beside float32 that the level `torch` tries; `TORCH_DTYPES` has them all."""

    def lacks(self, check: Check) -> str:
        """The first capability that a check needs and the chip lacks, as text; empty if it lacks none."""
        for need in sorted(check.needs):
            kind, _, name = need.partition(":")
            if kind == "torch":
                continue  # checks of other types are not planned
            have = {"type": self.types, "atomic": self.atomics, "feature": self.features}[kind]
            if have is not None and name not in have:
                return f"{kind} {name}"
        if self.maximum_tile is not None and check.elements > self.maximum_tile:
            return f"tiles of {check.elements} elements (its largest has {self.maximum_tile})"
        return ""


FEATURES = {
    "dot": "tl.dot",
    "dot_scaled": "tl.dot_scaled",
    "descriptors": "tensor descriptors",
    "libdevice": "functions of libdevice",
    "inline_ptx": "PTX instructions in tl.inline_asm_elementwise",
    "print": "device_print",
    "assert": "device_assert",
    "streams": "streams other than the default one",
    "events": "events",
    "atomics": "atomic operations",
    "map_elementwise": "map_elementwise",
    "noinline": "functions that are called, not inlined",
    "groups": "groups of ranks with symmetric memory",
}
"""The features that a profile may name, with descriptions."""

TORCH_DTYPES = ("bfloat16", "float16", "int64", "bool")
"""Types beside float32 on which the level `torch` tries operators."""


@dataclass(frozen=True)
class Profile:
    """A vendor's declarations. The empty profile claims all capabilities."""

    source: str = ""
    """The path of the file; empty if there is none."""
    memory: str = ""
    """``kit``, or ``torch:`` and a device string; empty: the kit's device if the driver has one, else torch."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    entries: tuple[Listing, ...] = ()

    def listing(self, check: Check) -> Listing | None:
        """The entry that applies to a check: a missing capability, or the first matching entry of the lists.

        Essential checks (`triton_porting_kit.conformance.essential`) can only be listed as expected failures.
        """
        if check.name in ESSENTIAL:
            expected = (e for e in self.entries if e.list == "expected_failures")
            return next((e for e in expected if fnmatch.fnmatchcase(check.name, e.pattern)), None)
        lacking = self.capabilities.lacks(check)
        if lacking:
            return Listing("unsupported", "capabilities", f"the profile does not claim {lacking}")
        for entry in self.entries:
            if fnmatch.fnmatchcase(check.name, entry.pattern):
                return entry
        return None

    def verify_patterns(self, checks: Iterable[Check], levels: Sequence[str] = tuple(LEVELS)) -> None:
        """Raises `ProfileError` for a pattern that matches no check: a declaration must be about something.

        `levels`: those of the checks. A pattern of another level is not looked at.
        """
        names = [check.name for check in checks]
        absent = tuple(f"{level}/" for level in LEVELS if level not in levels)
        about = [e for e in self.entries if not e.pattern.startswith(absent)]
        idle = [e for e in about if not fnmatch.filter(names, e.pattern)]
        if idle:
            shown = ", ".join(f"{e.pattern!r} in [[{e.list}]]" for e in idle)
            raise ProfileError(
                f"{self.source}: {shown} matches no check; `tpk conform --list` shows their names. "
                "Remove it, or correct its spelling"
            )

    def to_json(self) -> dict[str, Any]:
        """The profile as JSON types, for the report."""
        return {
            "source": self.source,
            "memory": self.memory,
            "capabilities": {
                "types": self.capabilities.types,
                "atomics": self.capabilities.atomics,
                "features": self.capabilities.features,
                "maximum_tile": self.capabilities.maximum_tile,
                "torch_dtypes": self.capabilities.torch_dtypes,
            },
            **{
                name: [
                    {"pattern": e.pattern, "reason": e.reason, "link": e.link}
                    for e in self.entries
                    if e.list == name
                ]
                for name in LISTS
            },
        }


def load(path: Path, arch: object = None) -> Profile:
    """Read a profile. Raises `ProfileError` with the wrong key and the allowed values.

    `arch`: the target's architecture; entries for other architectures are skipped. None: no entry is skipped.
    """
    remedy = "name another with --profile"
    data = untrusted.read_toml(path, untrusted.PROFILE, ProfileError, follow=True, remedy=remedy)
    _known(path, "", data, ("memory", "capabilities", *LISTS))
    memory = data.get("memory", "")
    if not isinstance(memory, str) or (memory and memory != "kit" and not memory.startswith("torch:")):
        raise ProfileError(f'{path}: memory is {memory!r}; it may be "kit" or "torch:" and a device string')
    return Profile(
        str(path), memory, _capabilities(path, data.get("capabilities", {})), _entries(path, data, arch)
    )


def find(backend: str) -> Path | None:
    """The profile in a backend's package, or the suite's own profile for it; None if there is neither.

    The package is found through Triton's registration, without importing it again.
    """
    from triton.backends import backends

    if backend in backends:
        package = backends[backend].compiler.__module__.rpartition(".")[0]
        spec = importlib.util.find_spec(package) if package else None
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (path := Path(folder) / FILE_NAME).is_file():
                return path
    own = Path(__file__).parent / "profiles" / f"{backend}.toml"
    return own if own.is_file() else None


def _entries(path: Path, data: Mapping[str, Any], arch: object) -> tuple[Listing, ...]:
    entries = []
    for name in LISTS:
        items = data.get(name, [])
        if not isinstance(items, list):
            raise ProfileError(f"{path}: {name} is a list of tables: write [[{name}]]")
        for item in items:
            _known(path, f"[[{name}]] ", item, ("pattern", "reason", "link", "architectures", "releases"))
            for key in ("pattern", "reason"):
                if not isinstance(item.get(key), str) or not item[key].strip():
                    raise ProfileError(f"{path}: an entry of [[{name}]] has no {key}: {item}")
            if _is_about(path, name, item, arch):
                entries.append(Listing(name, item["pattern"], item["reason"], str(item.get("link", ""))))
    return tuple(entries)


def _is_about(path: Path, name: str, item: Mapping[str, Any], arch: object) -> bool:
    """Whether an entry applies to an architecture and the installed Triton: it names them, or names none."""
    from triton_porting_kit.toolchain import compat  # a late import, because it imports Triton

    family = arch and str(arch).partition(":")[0]
    release = ".".join(map(str, compat.release()))
    return _names_this(path, name, item, "architectures", family) and _names_this(
        path, name, item, "releases", release
    )


def _names_this(path: Path, name: str, item: Mapping[str, Any], key: str, this: object) -> bool:
    named = item.get(key)
    if named is None:
        return True
    if not isinstance(named, list) or not named or not all(isinstance(n, str) and n for n in named):
        what = "the names that targets have" if key == "architectures" else "releases of Triton, as '3.9'"
        raise ProfileError(f"{path}: {key} of an entry of [[{name}]] is {named!r}; it is a list of {what}")
    return this is None or this in named


def _capabilities(path: Path, data: Mapping[str, Any]) -> Capabilities:
    from triton_porting_kit.conformance.types import KINDS

    _known(path, "[capabilities] ", data, ("types", "atomics", "features", "maximum_tile", "torch_dtypes"))
    tile = data.get("maximum_tile")
    if tile is not None and (not isinstance(tile, int) or isinstance(tile, bool) or tile < 1):
        raise ProfileError(f"{path}: [capabilities] maximum_tile is {tile!r}; it is a number of elements")
    return Capabilities(
        _names(path, data, "types", KINDS),
        _names(path, data, "atomics", KINDS),
        _names(path, data, "features", FEATURES),
        tile,
        _names(path, data, "torch_dtypes", TORCH_DTYPES),
    )


def _names(path: Path, data: Mapping[str, Any], key: str, known: Iterable[str]) -> tuple[str, ...] | None:
    if key not in data:
        return None
    names = data[key]
    if not isinstance(names, list):
        raise ProfileError(f"{path}: [capabilities] {key} is {names!r}; it is a list of names")
    for name in names:
        if name not in known:
            raise ProfileError(f"{path}: [capabilities] {key} has {name!r}; there are {', '.join(known)}")
    return tuple(names)


def _known(path: Path, where: str, data: Any, keys: Sequence[str]) -> None:
    if not isinstance(data, Mapping):
        raise ProfileError(f"{path}: {where or 'the file '}is {data!r}; it must be a table")
    for key in data:
        if key not in keys:
            raise ProfileError(f"{path}: {where}{key} is not a known key; the keys are {', '.join(keys)}")

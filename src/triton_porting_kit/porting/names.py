"""The rule for the names of a backend: what may be typed, and every other name that follows from it.

A name is 1 to 24 ASCII letters, digits and single dashes; it begins with a letter and does not end with a dash.
An underscore counts as a dash, and capitals matter to names of classes only. It is refused where something else is
called so: a backend, a package, a word of Python, or a class of the kit once `Device` and the like are added to it.

The limits on length, and on what a vendor or a chip may be called, are also what keeps generated code formatted:
no line of the template becomes too long, whatever the names are.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

from triton_porting_kit.errors import NamingError

MAXIMUM = 24
"""Characters of a name."""
MAXIMUM_TITLE = 32
"""Characters of what a vendor or a chip is called."""

IN_TREE = {
    "cpu": "the kit's reference backend",
    "nvidia": "Triton's backend for NVIDIA's GPUs",
    "cuda": "the target of Triton's backend for NVIDIA's GPUs",
    "amd": "Triton's backend for AMD's GPUs",
    "hip": "the target of Triton's backend for AMD's GPUs",
}
"""Names that are taken wherever Triton and the kit are installed, and by what."""
PACKAGES = {
    "porting-kit": "the kit itself",
    "kernels": "Triton's collection of kernels, triton-kernels",
    "nightly": "a build of Triton itself, triton-nightly",
    "windows": "a build of Triton itself, triton-windows",
}
"""Names X such that triton-X is known to be something else, though it may not be installed."""
RESERVED = {
    **{
        name.lower(): f"{name} is a module of Python's standard library, which people and tools would take it for"
        for name in sorted(sys.stdlib_module_names)
    },
    **dict.fromkeys(
        ("test", "tests", "testing", "example", "examples", "demo", "sample"),
        "what is called so is taken for tests or an example, by people and by tools",
    ),
    **dict.fromkeys(
        ("build", "dist", "src", "lib", "include", "native", "docs"),
        "it is what folders of a repository are called",
    ),
    **dict.fromkeys(
        (
            "backend",
            "backends",
            "compiler",
            "driver",
            "launcher",
            "runtime",
            "language",
            "tools",
            "plugins",
            "core",
        ),
        "parts of a backend, or of Triton, are called so",
    ),
    **dict.fromkeys(
        ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))),
        "Windows keeps that name for a device, and has no file or folder called so",
    ),
    **dict.fromkeys(
        ("default", "auto", "any", "all", "unknown", "null", "self", "super", "object"),
        "it reads as a setting or a word of a language, not as a name",
    ),
}
"""Names that would make a repository that confuses people or tools, or that cannot be built everywhere; and why."""
CLASSES = frozenset(
    {
        "base",
        "build",
        "checked",
        "device",
        "generated",
        "gpu",
        "host",
        "kernel",
        "packed",
        "pipeline",
        "python",
    }
)
"""Beginnings of classes that the kit or Triton has, where those of a backend would be called alike: HostDevice."""


@dataclass(frozen=True)
class Names:
    """What a backend and the parts of its repository are called."""

    name: str
    """As in ``triton-NAME``: lower case, with dashes."""
    backend: str
    """What Triton knows the backend and its target by: lower case, with underscores."""
    class_prefix: str
    """What the names of classes begin with."""

    @property
    def repository(self) -> str:
        """Of the folder and the distribution."""
        return f"triton-{self.name}"

    @property
    def package(self) -> str:
        """What Python imports."""
        return f"triton_{self.backend}"

    @property
    def words(self) -> str:
        """As a vendor of that name writes it."""
        return " ".join(word[0].upper() + word[1:] for word in self.name.split("-"))


def names_of(given: str, registered: Mapping[str, str] | None = None) -> Names:
    """The names that follow from what was typed.

    `registered`: names of backends that are there, and what each is; by default those that are installed. Raises
    `NamingError` with the reason and, where there is one, a name that would do.
    """
    registered = installed() if registered is None else registered
    reason = refusal(given, registered)
    if reason:
        better = next((name for name in suggestions(given) if not refusal(name, registered)), "")
        raise NamingError(f"{given!r} cannot be the name of a backend: {reason}", better)
    return following(given)


def following(given: str) -> Names:
    """The names that follow from one that was taken before. Raises `NamingError` where it has another form."""
    if reason := _wrong_form(given):
        raise NamingError(f"{given!r:.80} cannot be the name of a backend: {reason}")
    name = given.replace("_", "-")
    prefix = "".join(part[0].upper() + part[1:] for part in name.split("-"))
    return Names(name.lower(), name.lower().replace("-", "_"), prefix)


def refusal(given: str, registered: Mapping[str, str]) -> str:
    """Why a name cannot be taken; empty if it can."""
    return _wrong_form(given) or _taken(given.lower().replace("_", "-"), registered)


def title(text: str, what: str) -> str:
    """What a vendor or a chip (`what`) is called, if that can stand in code, TOML and YAML. Raises `NamingError`."""
    stripped = " ".join(text.split())
    wrong = sorted({character for character in stripped if not _is_plain(character)})
    if not stripped:
        raise NamingError(f"the {what} is called nothing: leave the option out, or give it a name")
    if wrong:
        shown = " ".join(repr(character) for character in wrong)
        better = " ".join("".join(c if _is_plain(c) else " " for c in _ascii(stripped)).split())
        raise NamingError(
            f"the {what} cannot be called {text!r}, for {shown}: Latin letters, digits, spaces and -.,&+() may stand "
            "in it",
            better[:MAXIMUM_TITLE].strip(),
        )
    if len(stripped) > MAXIMUM_TITLE:
        raise NamingError(
            f"the {what} cannot be called {text!r}: that is {len(stripped)} characters, and {MAXIMUM_TITLE} fit on a "
            "line of code beside the rest",
            stripped[:MAXIMUM_TITLE].strip(),
        )
    return stripped


def installed() -> dict[str, str]:
    """Names that backends are registered by, in this environment and in Triton, and what each is."""
    found = dict(IN_TREE)
    for entry in metadata.entry_points(group="triton.backends"):
        by = entry.dist.name if entry.dist else entry.value
        found.setdefault(entry.name.lower().replace("_", "-"), f"a backend of {by}, which is installed")
    return found


def suggestions(given: str) -> Iterable[str]:
    """Names that are near, the nearest first; not all of them would do."""
    last = re.split(r"[/\\]", given.rstrip("/\\"))[-1]
    plain = "-".join(re.findall(r"[A-Za-z0-9]+", _ascii(last)))
    plain = re.sub(r"^triton-?", "", plain, flags=re.IGNORECASE)
    digits = re.match(r"[0-9-]*", plain)
    if digits and digits[0]:
        plain = plain[digits.end() :].rstrip("-") + digits[0].strip("-")
    if plain:
        yield plain[:MAXIMUM].rstrip("-")
        yield f"{plain[: MAXIMUM - 4].rstrip('-')}-npu"
        yield f"chip-{plain}"[:MAXIMUM].rstrip("-")
    yield "acme"


def _wrong_form(given: str) -> str:
    if not given:
        return "it is empty"
    if re.search(r"[/\\]", given):
        return "it is a path; --dest DIR says where the repository goes"
    if foreign := sorted({character for character in given if not re.match(r"[A-Za-z0-9_-]", character)}):
        shown = " ".join(repr(character) for character in foreign)
        return f"it holds {shown}, and only ASCII letters, digits and dashes can be part of it"
    if len(given) > MAXIMUM:
        return f"it has {len(given)} characters, and {MAXIMUM} are the most"
    if not given[0].isalpha():
        return f"it begins with {given[0]!r}, and what Python imports begins with a letter"
    if not re.fullmatch(r"[A-Za-z0-9]+([_-][A-Za-z0-9]+)*", given):
        return "its dashes have to stand singly, between letters or digits"
    return ""


def _taken(name: str, registered: Mapping[str, str]) -> str:
    backend = name.replace("-", "_")
    if name.startswith("triton"):
        return "what is made from it begins with triton already: triton-NAME"
    if reason := RESERVED.get(name) or RESERVED.get(backend):
        return reason
    if keyword.iskeyword(backend) or backend in ("true", "false", "none"):
        return f"{backend} is a word of Python, which no module of a language extension can be called"
    if name in registered:
        return f"that is {registered[name]}"
    if name in PACKAGES:
        return f"triton-{name} is {PACKAGES[name]}"
    if backend.replace("_", "") in CLASSES:
        return "classes of the kit or of Triton begin so, and those of the backend would be called alike"
    return _importable(f"triton_{backend}", f"triton-{name}")


def _importable(package: str, distribution: str) -> str:
    try:
        held = metadata.distribution(distribution)
        return f"{distribution} {held.version} is installed"
    except metadata.PackageNotFoundError:
        pass
    spec = importlib.util.find_spec(package)
    return f"a package {package} is there already, in {spec.origin or 'this environment'}" if spec else ""


_ALIKE = "\u0131\u017f"
"""Latin letters that are easily taken for others."""


def _is_plain(character: str) -> bool:
    """Whether a character may stand in what a vendor or a chip is called: nothing that quotes or looks like another."""
    if character in " -.,&+()":
        return True
    latin = character.isascii() or "\xc0" <= character <= "\u017f"
    return latin and character.isalnum() and character not in _ALIKE


def _ascii(text: str) -> str:
    """With accents taken off; what has no ASCII letter is left out."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

"""The rules for the name of a backend, and the other names that are derived from it.

A name consists of 1 to 24 ASCII letters, digits and single dashes, begins with a letter and does not end with a dash.
An underscore counts as a dash. Capitals matter only for class names. A name is refused if it is taken: by a backend, a
package, a keyword of Python, or, with a suffix such as `Device`, by a class of the kit.

The length limits of backends, vendors and chips also ensure that no line of generated code becomes too long.
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
"""The maximum length of a backend's name."""
MAXIMUM_TITLE = 32
"""The maximum length of the name of a vendor or a chip."""

IN_TREE = {
    "cpu": "the kit's reference backend",
    "opencl": "the kit's reference backend for OpenCL",
    "nvidia": "Triton's backend for NVIDIA's GPUs",
    "cuda": "the target of Triton's backend for NVIDIA's GPUs",
    "amd": "Triton's backend for AMD's GPUs",
    "hip": "the target of Triton's backend for AMD's GPUs",
}
"""Names that Triton and the kit use, and for what."""
TORCH_DEVICES = frozenset(
    (
        "cpu",
        "cuda",
        "ipu",
        "xpu",
        "mkldnn",
        "opengl",
        "opencl",
        "ideep",
        "hip",
        "ve",
        "fpga",
        "maia",
        "xla",
        "lazy",
        "vulkan",
        "mps",
        "meta",
        "hpu",
        "mtia",
        "privateuseone",
    )
)
"""The device types of PyTorch: c10/core/DeviceType.h."""
PACKAGES = {
    "porting-kit": "the kit itself",
    "kernels": "Triton's collection of kernels, triton-kernels",
    "nightly": "a build of Triton itself, triton-nightly",
    "windows": "a build of Triton itself, triton-windows",
}
"""Names X for which triton-X is another package, whether or not it is installed."""
RESERVED = {
    **{
        name.lower(): f"{name} is a module of Python's standard library, with which people and tools would confuse it"
        for name in sorted(sys.stdlib_module_names)
    },
    **dict.fromkeys(
        ("test", "tests", "testing", "example", "examples", "demo", "sample"),
        "people and tools would take it for tests or an example",
    ),
    **dict.fromkeys(
        ("build", "dist", "src", "lib", "include", "native", "docs"),
        "folders of a repository have this name",
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
            "conformance",
        ),
        "parts of a backend or of Triton have this name",
    ),
    **dict.fromkeys(
        ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))),
        "Windows reserves this name for a device, so no file or folder can have it",
    ),
    **dict.fromkeys(
        ("default", "auto", "any", "all", "unknown", "null", "self", "super", "object"),
        "it looks like a setting or a keyword, not like a name",
    ),
}
"""Names that would confuse people or tools, or that do not work on every system, and why."""
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
        "opencl",
        "packed",
        "pipeline",
        "python",
    }
)
"""Prefixes of classes of the kit or Triton, such as HostDevice, that a backend's classes would clash with."""


@dataclass(frozen=True)
class Names:
    """The names of a backend and of the parts of its repository."""

    name: str
    """The name in ``triton-NAME``: lower case, with dashes."""
    backend: str
    """The name of the backend and of its target in Triton: lower case, with underscores."""
    class_prefix: str
    """The prefix of class names."""

    @property
    def repository(self) -> str:
        """The name of the folder and of the distribution."""
        return f"triton-{self.name}"

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return f"triton_{self.backend}"

    @property
    def torch_device(self) -> str:
        """The type of the torch device, for which PyTorch allows letters and underscores."""
        letters = re.sub(r"_+", "_", re.sub(r"[0-9]", "", self.backend)).strip("_")
        return f"{letters}_device" if letters in TORCH_DEVICES else letters

    @property
    def words(self) -> str:
        """The name as the default name of the vendor: words with capitals."""
        return " ".join(word[0].upper() + word[1:] for word in self.name.split("-"))


def names_of(given: str, registered: Mapping[str, str] | None = None) -> Names:
    """Derive all names from the name that the user gave.

    `registered`: the names of existing backends with a description; by default the installed ones. Raises `NamingError`
    with the reason and, if there is one, an allowed name.
    """
    registered = installed() if registered is None else registered
    reason = refusal(given, registered)
    if reason:
        better = next((name for name in suggestions(given) if not refusal(name, registered)), "")
        raise NamingError(f"{given!r} cannot be the name of a backend: {reason}", better)
    return following(given)


def following(given: str) -> Names:
    """Derive all names from a name that was accepted before. Raises `NamingError` if its form is invalid."""
    if reason := _wrong_form(given):
        raise NamingError(f"{given!r:.80} cannot be the name of a backend: {reason}")
    name = given.replace("_", "-")
    prefix = "".join(part[0].upper() + part[1:] for part in name.split("-"))
    return Names(name.lower(), name.lower().replace("-", "_"), prefix)


def refusal(given: str, registered: Mapping[str, str]) -> str:
    """Why a name is refused; empty if it is accepted."""
    return _wrong_form(given) or _taken(given.lower().replace("_", "-"), registered)


def title(text: str, what: str) -> str:
    """The name of a vendor or a chip (`what`), if it is valid in code, TOML and YAML. Raises `NamingError`."""
    stripped = " ".join(text.split())
    wrong = sorted({character for character in stripped if not _is_plain(character)})
    if not stripped:
        raise NamingError(f"the name of the {what} is empty: leave out the option, or give a name")
    if wrong:
        shown = " ".join(repr(character) for character in wrong)
        better = " ".join("".join(c if _is_plain(c) else " " for c in _ascii(stripped)).split())
        raise NamingError(
            f"the {what} cannot be called {text!r}, because of {shown}: only Latin letters, digits, spaces and "
            "-.,&+() are allowed",
            better[:MAXIMUM_TITLE].strip(),
        )
    if len(stripped) > MAXIMUM_TITLE:
        raise NamingError(
            f"the {what} cannot be called {text!r}: the name has {len(stripped)} characters, and at most "
            f"{MAXIMUM_TITLE} fit into a line of generated code",
            stripped[:MAXIMUM_TITLE].strip(),
        )
    return stripped


def installed() -> dict[str, str]:
    """The names of backends that are registered in this environment and in Triton, with a description of each."""
    found = dict(IN_TREE)
    for entry in metadata.entry_points(group="triton.backends"):
        by = entry.dist.name if entry.dist else entry.value
        found.setdefault(entry.name.lower().replace("_", "-"), f"a backend of {by}, which is installed")
    return found


def suggestions(given: str) -> Iterable[str]:
    """Similar names, the most similar first; some of them may be refused, too."""
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
        return "it is a path; use --dest DIR for the place of the repository"
    if foreign := sorted({character for character in given if not re.match(r"[A-Za-z0-9_-]", character)}):
        shown = " ".join(repr(character) for character in foreign)
        return f"it contains {shown}; only ASCII letters, digits and dashes are allowed"
    if len(given) > MAXIMUM:
        return f"it has {len(given)} characters; at most {MAXIMUM} are allowed"
    if not given[0].isalpha():
        return f"it begins with {given[0]!r}, but names of Python packages begin with a letter"
    if not re.fullmatch(r"[A-Za-z0-9]+([_-][A-Za-z0-9]+)*", given):
        return "each dash must be single and between letters or digits"
    return ""


def _taken(name: str, registered: Mapping[str, str]) -> str:
    backend = name.replace("-", "_")
    if name.startswith("triton"):
        return "the derived names begin with triton already, as in triton-NAME"
    if reason := RESERVED.get(name) or RESERVED.get(backend):
        return reason
    if keyword.iskeyword(backend) or backend in ("true", "false", "none"):
        return f"{backend} is a keyword of Python, which cannot be the name of a module"
    if name in registered:
        return f"that is {registered[name]}"
    if name in PACKAGES:
        return f"triton-{name} is {PACKAGES[name]}"
    if backend.replace("_", "") in CLASSES:
        return "the backend's classes would have the names of classes of the kit or of Triton"
    return _importable(f"triton_{backend}", f"triton-{name}")


def _importable(package: str, distribution: str) -> str:
    try:
        held = metadata.distribution(distribution)
        return f"{distribution} {held.version} is installed"
    except metadata.PackageNotFoundError:
        pass
    spec = importlib.util.find_spec(package)
    return f"a package {package} already exists, in {spec.origin or 'this environment'}" if spec else ""


_ALIKE = "\u0131\u017f"
"""Latin letters that are easily confused with others."""


def _is_plain(character: str) -> bool:
    """Whether a character is allowed in the name of a vendor or a chip: no quotes, and no look-alikes of others."""
    if character in " -.,&+()":
        return True
    latin = character.isascii() or "\xc0" <= character <= "\u017f"
    return latin and character.isalnum() and character not in _ALIKE


def _ascii(text: str) -> str:
    """The text without accents, and without characters that have no ASCII letter."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

"""Building the kit's extension modules with a mutation: a full build once, then only what the mutation affects.

All files are in a private folder; the sources are copied from the installed kit.
"""

from __future__ import annotations

import importlib.machinery
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.abi import header
from triton_porting_kit.conformance.mutants.mutation import Mutation
from triton_porting_kit.conformance.mutants.sources import folder_of
from triton_porting_kit.errors import PortingKitError

MODULES = {
    "_host": "triton_porting_kit.driver.host._host",
    "tpk_packed": "triton_porting_kit.launcher._packed",
}
"""The extension modules of the CPU backend, by CMake target."""
SECONDS = 600.0
"""Time limit of one compilation."""

_ROOT = """cmake_minimum_required(VERSION 3.20)
project(mutants LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG REQUIRED)
find_package(Threads REQUIRED)
set(abi_include ${CMAKE_CURRENT_SOURCE_DIR}/abi/include)
add_subdirectory(driver)
add_subdirectory(launcher)
"""
_REMEDY = "install a C++ compiler and pip install 'triton-porting-kit[mutants]', or skip C++: --select '*.py'"


class BuildFailed(PortingKitError):
    """The unmodified C++ sources of the kit cannot be built on this machine."""


class NoMutant(Exception):
    """A mutation does not compile, or compiles to the same code."""


@dataclass(frozen=True)
class _Object:
    module: str
    """The target that the object is linked into."""
    path: str
    """Relative to the build folder."""
    command: list[str]
    sources: frozenset[str]
    """The files that it is compiled from, relative to the source folder."""


class NativeBuild:
    """Builds the unmodified modules once, and modules with one mutation. Thread-safe."""

    def __init__(self, folder: Path, jobs: int = 1) -> None:
        """`folder`: a private folder. `jobs`: the number of parallel compilations of the full build."""
        self._jobs = jobs
        self._sources, self._build = folder / "sources", folder / "build"
        self._lock = threading.Lock()
        self._objects: list[_Object] | None = None
        self._links: dict[str, list[str]] = {}

    def make(self, mutation: Mutation, content: bytes, folder: Path) -> dict[str, Path]:
        """Build the modules that contain a mutated file in `folder`. Returns their files by module name.

        Raises `NoMutant`, or `BuildFailed` if even the unmodified sources cannot be built.
        """
        objects = [one for one in self._prepared() if mutation.path in one.sources]
        if not objects:
            raise NoMutant("the file is not part of a module")
        tree = folder / "sources"
        shutil.copytree(self._sources, tree)
        (tree / mutation.path).write_bytes(content)
        changed: dict[str, dict[str, str]] = {}
        for number, one in enumerate(objects):
            made = folder / f"{number}.o"
            command = [
                word.replace(str(self._sources), str(tree)) if word.startswith(("/", "-I")) else word
                for word in one.command
            ]
            command[command.index("-o") + 1] = str(made)
            done = run_tool(_without_dependencies(command), self._build)
            if done.returncode:
                raise NoMutant(f"it does not compile: {_first_error(done.stderr)}")
            if made.read_bytes() != (self._build / one.path).read_bytes():
                changed.setdefault(one.module, {})[one.path] = str(made)
        if not changed:
            raise NoMutant("it compiles to the same code")
        return {MODULES[target]: self._linked(target, instead, folder) for target, instead in changed.items()}

    def _linked(self, target: str, instead: dict[str, str], folder: Path) -> Path:
        made = folder / (MODULES[target].rpartition(".")[2] + importlib.machinery.EXTENSION_SUFFIXES[0])
        command = [instead.get(word, word) for word in self._links[target]]
        command[command.index("-o") + 1] = str(made)
        done = run_tool(command, self._build)
        if done.returncode:
            raise NoMutant(f"it cannot be linked: {_first_error(done.stderr)}")
        return made

    # --- everything, once ----------------------------------------------------------------------------

    def _prepared(self) -> list[_Object]:
        with self._lock:
            if self._objects is None:
                self._objects = self._prepare()
            return self._objects

    def _prepare(self) -> list[_Object]:
        ninja = _tool("ninja")
        build_all(self._sources, self._build, self._jobs)
        made_of = self._made_of(run_tool([ninja, "-t", "deps"], self._build).stdout)
        found = []
        for target in MODULES:
            commands = run_tool([ninja, "-t", "commands", target], self._build).stdout.splitlines()
            *compilations, link = [shlex.split(line) for line in commands]
            self._links[target] = _linking(link)
            for command in compilations:
                if "-c" in command:
                    path = command[command.index("-o") + 1]
                    found.append(_Object(target, path, command, made_of.get(path, frozenset())))
        for target in MODULES:  # otherwise every mutation would seem not to compile
            with tempfile.TemporaryDirectory(prefix="tpk-native-") as folder:
                try:
                    self._linked(target, {}, Path(folder))
                except NoMutant as error:
                    raise BuildFailed(f"the kit's unmodified C++ cannot be built: {error}") from error
        return found

    def _made_of(self, said: str) -> dict[str, frozenset[str]]:
        """The files of the kit that each object is compiled from, parsed from the output of `ninja -t deps`."""
        found: dict[str, set[str]] = {}
        one = ""
        for line in said.splitlines():
            if line[:1].strip():
                one = line.partition(": #deps")[0]
            elif line.strip().startswith(f"{self._sources}/"):
                found.setdefault(one, set()).add(str(Path(line.strip()).relative_to(self._sources)))
        return {path: frozenset(sources) for path, sources in found.items()}


def build_all(sources: Path, build: Path, jobs: int, flags: str = "", beside: str = "") -> None:
    """Copy the C++ sources of the kit to a folder, and build its extension modules in another.

    `flags`: additional compiler flags. `beside`: C++ source added to each module. Raises `BuildFailed`.
    """
    cmake, ninja = (_tool(name) for name in ("cmake", "ninja"))
    pybind11 = run_tool([sys.executable, "-m", "pybind11", "--cmakedir"], Path.cwd())
    if pybind11.returncode:
        raise BuildFailed(f"the kit's C++ is built with pybind11, which is not installed: {_REMEDY}")
    shutil.rmtree(sources, ignore_errors=True)
    for package in ("driver", "launcher"):
        leave = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(folder_of(package), sources / package, ignore=leave)
    shutil.copytree(header.INCLUDE, sources / "abi" / "include")
    root = _ROOT
    if beside:
        (sources / "beside.cpp").write_text(beside)
        root += "".join(
            f"target_sources({target} PRIVATE ${{CMAKE_SOURCE_DIR}}/beside.cpp)\n" for target in MODULES
        )
    (sources / "CMakeLists.txt").write_text(root)
    configure = [
        cmake, "-S", str(sources), "-B", str(build), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF", f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DPython_EXECUTABLE={sys.executable}", f"-Dpybind11_DIR={pybind11.stdout.strip()}",
    ]  # fmt: skip
    make = [cmake, "--build", str(build), "--parallel", str(jobs), "--target", *MODULES]
    for command in (configure, make):
        done = run_tool(command, Path.cwd(), 4 * SECONDS)
        if done.returncode:
            said = _first_error(done.stderr + done.stdout)
            raise BuildFailed(f"the kit's unmodified C++ cannot be built: {said}: {_REMEDY}")


def _tool(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = shutil.which(name) or (str(beside) if beside.is_file() else None)
    if found is None:
        raise BuildFailed(f"the kit's C++ is built with {name}, which is not installed: {_REMEDY}")
    return found


def run_tool(
    command: Sequence[str], folder: Path, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{command[0]} cannot be run: {error}: {_REMEDY}") from error


def _without_dependencies(command: Sequence[str]) -> list[str]:
    """The command without the options that write a dependency file."""
    found: list[str] = []
    words = iter(command)
    for word in words:
        if word in ("-MT", "-MF"):
            next(words)
        elif word != "-MD":
            found.append(word)
    return found


def _linking(words: Sequence[str]) -> list[str]:
    """The linker command within ninja's shell command; later commands, for example, strip symbols."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            commands.append([])
        else:
            commands[-1].append(word)
    return next(command for command in commands if "-o" in command)


def _first_error(text: str) -> str:
    errors = [line for line in text.splitlines() if re.search(r"\berror\b", line, re.IGNORECASE)]
    return (errors or text.strip().splitlines() or ["no message"])[0][:300]


@dataclass
class Built:
    """A mutation built in a temporary folder. Use it as a context manager, which removes the folder."""

    build: NativeBuild
    mutation: Mutation
    content: bytes

    def __enter__(self) -> dict[str, Path]:
        self._folder = tempfile.TemporaryDirectory(prefix="tpk-native-")
        try:
            return self.build.make(self.mutation, self.content, Path(self._folder.name))
        except BaseException:
            self._folder.cleanup()
            raise

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

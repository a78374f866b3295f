"""Profiles, answers, sources, cached metadata and results that were damaged: the typed error of each, or a result."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzzing import BUDGETS, changed, damaged, fuzz
from hypothesis import strategies as st

from benchmarks.counts import CountError
from benchmarks.counts import read as read_counts
from benchmarks.figures import Figure, Results
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.profile import ProfileError, load
from triton_porting_kit.errors import AnswersError, PortingKitError
from triton_porting_kit.porting.native_sources import definitions
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.porting.template import ANSWERS
from triton_porting_kit.porting.update import read_answers
from triton_porting_kit.toolchain.cache_manager import _is_metadata

PROFILE = """memory = "torch:npu"
[capabilities]
types = ["fp32", "bf16"]
atomics = []
features = ["dot", "print"]
maximum_tile = 4096
[[unsupported]]
pattern = "language/*/sort-*"
reason = "no sorting"
link = "https://example.org/1"
releases = ["3.9"]
[[expected_failures]]
pattern = "runtime/*"
reason = 'not yet'
architectures = ["one", "two"]
"""
ANSWERED = """# Changes here will be overwritten
_commit: "1.0.0"
_src_path: "git+triton-porting-kit:template"
backend: "acme"
chip: "NPU"
class_prefix: "Acme"
kit_version: "1.0.0"
name: "acme"
package: "triton_acme"
torch_device: "acme"
vendor: "Acme"
"""
PROJECT = """[project]
name = "triton-acme"
[project.entry-points."triton.backends"]
acme = "triton_acme"
"""
DEVICE = """from triton_porting_kit.driver import Device
class AcmeDevice(Device):
    def memalloc(self, size):
        return self._native.allocate(self._checked(size))
    def _checked(self, size):
        return self._native.check(size)
    def memfree(self, addr):
        raise NotImplementedError
"""
NATIVE = """#include <x.h>
/* a comment */ int allocate(int size) const noexcept -> int { if (size) { return vnpu_alloc(size, "x{"); } return 0; }
void check(int size) { // }
}
PYBIND11_MODULE(_native, m) { m.def("allocate", &allocate); bind(m, "check", 1); }
"""
FIGURE = Figure("kernels", "add", "ours", 2, "s", 1e-3, 9e-4, 2e-3, bar=1.0, rounds=(1.0, 2.0))
RESULTS = json.dumps({"format": 2, "about": {"date": "2026-01-01"}, "figures": [FIGURE.to_json()]})
COUNTS = json.dumps({"counts": {"compile": 7}, "versions": {"triton": "3.9.0"}})
METADATA = json.dumps({"hash": "ab", "target": {"backend": "cpu", "arch": "x", "warp_size": 1}, "shared": 0})


def _profile(folder: Path) -> None:
    found = load(folder / "conformance.toml", arch="one")
    found.listing(Check("language/scan/sort-fp32", "It holds.", lambda context: None))
    json.dumps(found.to_json())


def _sources(folder: Path) -> None:
    repository = Repository(folder)
    assert repository.backend
    for name in ("memalloc", "memfree", "launch"):
        repository.method(name)
        repository.native.bound(name)
    assert isinstance(repository.native.functions, dict)
    repository.use("Device")
    repository.subclass("Device")
    repository.line("pyproject.toml", "triton")


def _results(folder: Path) -> None:
    for figure in Results.read(folder / "results.json").figures:
        assert figure.text()
        assert figure.met in (None, True, False)


@dataclass(frozen=True)
class Reader:
    """What reads a few files."""

    files: dict[str, str]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]


READERS = {
    "profile": Reader({"conformance.toml": PROFILE}, _profile, (ProfileError,)),
    "answers": Reader({ANSWERS: ANSWERED}, read_answers, (AnswersError,)),
    "sources": Reader(
        {"pyproject.toml": PROJECT, "src/triton_acme/driver.py": DEVICE, "native/device.cpp": NATIVE},
        _sources,
        (PortingKitError,),
    ),
    "results": Reader({"results.json": RESULTS}, _results, (ValueError,)),
    "counts": Reader(
        {"counts.json": COUNTS}, lambda folder: read_counts(folder / "counts.json"), (CountError,)
    ),
    "metadata": Reader({"k.json": METADATA}, lambda folder: _is_metadata(folder / "k.json"), ()),
}


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_whole_is_read(reader: Reader, tmp_path: Path) -> None:
    write(tmp_path, {name: text.encode() for name, text in reader.files.items()})
    reader.read(tmp_path)


@pytest.mark.parametrize("times", BUDGETS)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_damaged_is_read_or_refused(reader: Reader, times: int) -> None:
    good = {name: text.encode() for name, text in reader.files.items()}
    with tempfile.TemporaryDirectory() as place:

        def body(data: st.DataObject) -> None:
            name = data.draw(st.sampled_from(sorted(good)))
            if name.endswith(".json") and data.draw(st.booleans()):
                content = json.dumps(changed(data, json.loads(good[name]))).encode()
            else:
                content = damaged(data, good[name])
            write(Path(place), {**good, name: content})
            with contextlib.suppress(*reader.errors):
                reader.read(Path(place))

        fuzz(60 * times, body)


@pytest.mark.parametrize(
    "text",
    [
        "f(" * 200_000,
        "f() -> x   " + "-> x   " * 40 + "!",
        "f(){" * 100_000,
        "f()" + " const" * 50_000,
    ],
    ids=["parentheses", "arrows", "bodies", "words"],
)
def test_sources_are_read_in_time_that_grows_with_them(text: str) -> None:
    fuzz(1, lambda data: [*definitions(text)] and None)


def test_comments_that_do_not_end(tmp_path: Path) -> None:
    write(tmp_path, {name: text.encode() for name, text in READERS["sources"].files.items()})
    (tmp_path / "native" / "device.cpp").write_text("/*" * 200_000)
    assert Repository(tmp_path).native.functions == {}

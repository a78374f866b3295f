"""The mandatory lists, and that no check goes away unnoticed."""

from __future__ import annotations

from collections import Counter

import pytest

from triton_porting_kit.conformance import catalogue, mandatory
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.conformance.mandatory import Entry, MandatoryListError, writing
from triton_porting_kit.toolchain import compat

HINT = "run `make docs` if checks were to come or go, and say so in CHANGELOG.md"


@pytest.mark.parametrize("level", DEFAULT_LEVELS)
def test_lists_are_the_catalogue(level: str) -> None:
    """On the release of Triton that is installed."""
    listed = mandatory.names(level, compat.release())
    there = [check.name for check in catalogue.checks([level])]
    gone, unlisted = Counter(listed) - Counter(there), Counter(there) - Counter(listed)
    assert (list(gone)[:20], list(unlisted)[:20]) == ([], []), HINT


@pytest.mark.parametrize("level", DEFAULT_LEVELS)
def test_marks_are_those_of_checks(level: str) -> None:
    checks = list(catalogue.checks([level]))
    compiled = mandatory.names(level, compat.release(), compile_only=True)
    assert set(compiled) == {check.name for check in checks if check.compiles and not check.kit_device}
    on_torch = mandatory.names(level, compat.release(), kit=False)
    assert set(on_torch) == {check.name for check in checks if not check.kit_device}


def test_lists_are_written_so() -> None:
    """For all releases: also what only the others have."""
    for level, text in writing.documents().items():
        assert mandatory.path_of(level).read_text(encoding="utf-8") == text, f"{level}: {HINT}"


def test_language_is_listed_for_every_release() -> None:
    counts = [len(mandatory.names("language", release)) for release in compat.TRIED]
    assert all(count > 12_000 for count in counts)
    assert len(set(counts)) > 1


def test_documents_are_read_as_written() -> None:
    entries = [
        Entry("language/bits/not-i8-scalar", compiles=True),
        Entry("language/bits/not-i8-tile_1", compiles=True),
        Entry("language/bits/not-i16-tile_1", compiles=True, since=(3, 8)),
        Entry("runtime/memory/zero-size", kit=True),
        Entry("runtime/memory/odd-size", kit=True, until=(3, 7)),
    ]
    text = writing.document("language", entries)
    assert "language/bits/not-i8-{scalar,tile_1} [compiles]\n" in text
    assert "runtime/memory/odd-size [kit] [until 3.7]\n" in text
    assert list(mandatory.parse(text)) == entries


def test_releases_are_combined() -> None:
    old = [("a", False, True), ("b", False, True), ("d", False, True)]
    new = [("a", False, True), ("c", False, True), ("d", False, True)]
    entries = writing.combine({(3, 6): old, (3, 9): new})
    assert {e.name: (e.since, e.until) for e in entries} == {
        "a": (mandatory.FIRST, mandatory.LAST),
        "b": (mandatory.FIRST, (3, 6)),
        "c": ((3, 9), mandatory.LAST),
        "d": (mandatory.FIRST, mandatory.LAST),
    }
    with pytest.raises(MandatoryListError, match="check b is missing in a release"):
        writing.combine({(3, 6): old, (3, 8): new, (3, 9): old})


@pytest.mark.parametrize("line", ["two words", "a/b [often]", "a/b [since now]", "a/{b"])
def test_broken_lines_are_refused(line: str) -> None:
    with pytest.raises(MandatoryListError, match="line 2"):
        list(mandatory.parse(f"a/b\n{line}\n"))


def test_what_is_mandatory_depends_on_the_run() -> None:
    entry = Entry("runtime/memory/x", kit=True, since=(3, 7))
    assert entry.applies((3, 7), kit=True, compile_only=False)
    assert not entry.applies((3, 6), kit=True, compile_only=False)
    assert not entry.applies((3, 7), kit=False, compile_only=False)
    assert not entry.applies((3, 7), kit=True, compile_only=True)
    assert Entry("language/x", compiles=True).applies((3, 7), kit=True, compile_only=True)

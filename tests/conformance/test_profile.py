"""Profiles are read strictly, and say which checks are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.conformance import profile
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.profile import Capabilities, Profile, ProfileError
from triton_porting_kit.toolchain import compat

GOOD = """
memory = "kit"

[capabilities]
types = ["fp32", "i32"]
atomics = []
features = ["dot"]
maximum_tile = 4096

[[unsupported]]
pattern = "runtime/streams/*"
reason = "one queue"
link = "https://example.com/1"

[[expected_failures]]
pattern = "runtime/copies/odd"
reason = "not yet"

[[waivers]]
pattern = "kernels/*"
reason = "agreed"
"""


def check(name: str, needs: frozenset[str] = frozenset(), elements: int = 0) -> Check:
    return Check(name, "It does.", lambda context: None, needs=needs, elements=elements)


def read(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "conformance.toml"
    path.write_text(text)
    return profile.load(path)


def test_a_profile_lists_checks(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert found.memory == "kit"
    assert found.listing(check("runtime/memory/zero")) is None
    for name, expected in (
        ("runtime/streams/order", "unsupported"),
        ("runtime/copies/odd", "expected_failures"),
        ("kernels/softmax", "waivers"),
    ):
        listing = found.listing(check(name))
        assert listing is not None
        assert listing.list == expected
    streams = found.to_json()["unsupported"]
    assert streams == [
        {"pattern": "runtime/streams/*", "reason": "one queue", "link": "https://example.com/1"}
    ]


@pytest.mark.parametrize(
    ("needs", "elements", "lacking"),
    [
        ({"type:fp32", "feature:dot"}, 4096, ""),
        ({"type:fp64"}, 0, "type fp64"),
        ({"atomic:i32"}, 0, "atomic i32"),
        ({"feature:dot_scaled"}, 0, "feature dot_scaled"),
        (set(), 8192, "tiles of 8192 elements"),
    ],
)
def test_capabilities(tmp_path: Path, needs: set[str], elements: int, lacking: str) -> None:
    found = read(tmp_path, GOOD)
    listing = found.listing(check("language/x", frozenset(needs), elements))
    assert (listing is None) == (not lacking)
    if listing is not None:
        assert listing.list == "unsupported"
        assert lacking in listing.reason


def test_nothing_declared_claims_everything() -> None:
    assert Profile().listing(check("language/x", frozenset({"type:fp64", "feature:dot"}), 1 << 20)) is None
    assert Capabilities().lacks(check("a/b", frozenset({"atomic:fp64"}))) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory = 'gpu'", "memory is 'gpu'; it may be \"kit\""),
        ("memory = 1", "memory is 1"),
        ("memori = 'kit'", "memori is not a known key; the keys are memory, capabilities"),
        ("[capabilities]\ntypes = ['fp33']", r"types has 'fp33'; there are i1, i8"),
        ("[capabilities]\nfeatures = 'dot'", "features is 'dot'; it is a list of names"),
        ("[capabilities]\nmaximum_tile = 0", "maximum_tile is 0"),
        ("[capabilities]\nmaximum_tile = true", "maximum_tile is True"),
        ("[[waivers]]\npattern = 'x'", "has no reason"),
        ("[[waivers]]\nreason = 'x'", "has no pattern"),
        ("[[waivers]]\npattern = 'x'\nreason = ' '", "has no reason"),
        ("[[waivers]]\npattern = 'x'\nreason = 'y'\nlinc = 'z'", "linc is not a known key"),
        ("[unsupported]\npattern = 'x'", r"write \[\[unsupported\]\]"),
        ("x = ", "is not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"nowhere\.toml cannot be read"):
        profile.load(tmp_path / "nowhere.toml")


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    checks = [check("runtime/streams/order"), check("runtime/copies/odd"), check("kernels/softmax")]
    found = read(tmp_path, GOOD)
    found.verify_patterns(checks)
    with pytest.raises(ProfileError, match=r"'runtime/copies/odd' in \[\[expected_failures\]\]"):
        found.verify_patterns([c for c in checks if "copies" not in c.name])


def test_an_unknown_backend_has_no_profile() -> None:
    assert profile.find("no-such-backend") is None


LIMITED = """
[[unsupported]]
pattern = "language/a/*"
architectures = ["gfx90a", "gfx950"]
reason = "no such instruction"

[[unsupported]]
pattern = "language/b/*"
reason = "nowhere"
"""


def test_entries_may_be_about_some_architectures(tmp_path: Path) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text(LIMITED)

    def listed(arch: object) -> list[str]:
        return [entry.pattern for entry in profile.load(path, arch).entries]

    both = ["language/a/*", "language/b/*"]
    assert listed(None) == listed("gfx90a") == listed("gfx950:xnack-") == both
    assert listed("gfx942") == listed(90) == both[1:]
    assert [e["pattern"] for e in profile.load(path, "gfx942").to_json()["unsupported"]] == both[1:]


@pytest.mark.parametrize("value", ["[]", '"gfx90a"', "[90]", '[""]'])
def test_architectures_are_names(tmp_path: Path, value: str) -> None:
    with pytest.raises(ProfileError, match="it is a list of the names that targets have"):
        read(tmp_path, LIMITED.replace('["gfx90a", "gfx950"]', value))


def test_entries_may_be_about_some_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text(LIMITED.replace('architectures = ["gfx90a", "gfx950"]', 'releases = ["3.6", "3.10"]'))

    def listed(release: tuple[int, int]) -> list[str]:
        monkeypatch.setattr(compat, "release", lambda: release)
        return [entry.pattern for entry in profile.load(path, "gfx942").entries]

    both = ["language/a/*", "language/b/*"]
    assert listed((3, 6)) == listed((3, 10)) == both
    assert listed((3, 9)) == listed((3, 1)) == both[1:]


@pytest.mark.parametrize("value", ["[]", '"3.6"', "[3.6]"])
def test_releases_are_texts(tmp_path: Path, value: str) -> None:
    with pytest.raises(ProfileError, match=r"it is a list of releases of Triton, as '3\.9'"):
        read(tmp_path, LIMITED.replace('architectures = ["gfx90a", "gfx950"]', f"releases = {value}"))

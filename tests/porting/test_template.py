"""The kit's own template and its releases: what is released is never changed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from made_templates import NEW, OLD, write_template

from triton_porting_kit.errors import TemplateError
from triton_porting_kit.porting.template import Template, read_archive

RELEASED: dict[str, str] = {}
"""SHA-256 of what is in the archive of each release, as `digest` computes it: add a line with a release, change none."""


def digest(template: Template, version: str) -> str:
    """Of names, contents and modes: what another xz packs otherwise is the same."""
    summed = hashlib.sha256()
    for name, content, executable in read_archive(template.archive(version)):
        summed.update(f"{name}\0{len(content)}\0{executable}\0".encode() + content)
    return summed.hexdigest()


def test_released_templates_are_as_they_were() -> None:
    own = Template.own()
    released = {path.name.removesuffix(".tar.xz") for path in own.root.glob("releases/*")}
    assert {version: digest(own, version) for version in released} == RELEASED


def test_this_template_is_a_new_one_or_as_released() -> None:
    own = Template.own()
    assert own.changed() == [], "changed since it was released: the kit needs another version"
    assert own.versions()[-1] == own.version


def test_own_template_has_what_begins_with_a_dot() -> None:
    names = {name for name, _, _ in Template.own().files()}
    assert {
        "copier.yml",
        "template/.github/workflows/conformance.yml.jinja",
        "template/.gitignore.jinja",
        "template/.clang-format",
        "template/.ci/run.jinja",
        "template/pyproject.toml.jinja",
    } <= names
    assert {name for name, _, executable in Template.own().files() if executable} == {
        "template/.ci/run.jinja"
    }


def test_names_of_files_are_words() -> None:
    """make takes a blank for the end of a name; what Python would take for a module of the kit has another ending."""
    for name, _, _ in Template.own().files():
        assert not set(name) & set(" \t\n$%#:\"'\\"), name
        assert not name.endswith((".py", ".pyi")), name


def test_a_release_holds_every_file(tmp_path: Path) -> None:
    template = write_template(tmp_path, "1.0.0", OLD)
    (tmp_path / "template" / "__pycache__").mkdir()
    (tmp_path / "template" / "__pycache__" / "x.pyc").touch()
    path = template.release()
    assert path == tmp_path / "releases" / "1.0.0.tar.xz"
    assert list(read_archive(path)) == list(template.files())
    assert ("template/.ci/run", b"#!/bin/sh\n", True) in list(read_archive(path))


def test_a_release_is_written_once(tmp_path: Path) -> None:
    template = write_template(tmp_path, "1.0.0", OLD)
    path = template.release()
    before = path.read_bytes()
    assert template.release() == path
    write_template(tmp_path, "1.0.0", NEW)
    assert "template/native/device.cpp" in template.changed()
    with pytest.raises(TemplateError, match="another version"):
        template.release()
    assert path.read_bytes() == before
    (tmp_path / "template" / ".ci" / "run").chmod(0o644)
    assert "template/.ci/run" in template.changed()


def test_a_release_does_not_depend_on_when_and_where(tmp_path: Path) -> None:
    one = write_template(tmp_path / "one", "1.0.0", OLD).release().read_bytes()
    two = write_template(tmp_path / "two", "1.0.0", dict(reversed(OLD.items()))).release().read_bytes()
    assert one == two


def test_versions_are_in_their_order(tmp_path: Path) -> None:
    for version in ("0.9", "0.10", "0.10rc1"):
        write_template(tmp_path, version, OLD).release()
    assert write_template(tmp_path, "1.0", OLD).versions() == ["0.9", "0.10rc1", "0.10", "1.0"]
    assert write_template(tmp_path, "0.10", OLD).versions() == ["0.9", "0.10rc1", "0.10"]


def test_the_maker_is_a_program(tmp_path: Path) -> None:
    version = Template.own().version
    write_template(tmp_path, version, OLD)
    command = [sys.executable, "-m", "triton_porting_kit.porting.template", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/releases/{version}.tar.xz\n"
    write_template(tmp_path, version, NEW)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "another version" in done.stderr

"""Bringing a newer template in: what a vendor changed is kept, what is new arrives, what contradicts is marked."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from made_templates import NEW, OLD, commit, contents, git, make_acme, write_template

from triton_porting_kit.errors import AnswersError, DirtyTreeError, TemplateError
from triton_porting_kit.porting.template import ANSWERS, Template
from triton_porting_kit.porting.update import Update, update


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository made from the old template, which tests work on copies of."""
    folder = tmp_path_factory.mktemp("made")
    return make_acme(write_template(folder / "template", "1.0.0", OLD), folder).path


@pytest.fixture
def old(tmp_path: Path) -> Template:
    return write_template(tmp_path / "template", "1.0.0", OLD)


@pytest.fixture
def repository(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "triton-acme", symlinks=True)


@pytest.fixture
def new(old: Template, repository: Path) -> Template:
    """The kit moved on: the old template was released, and another is there."""
    old.release()
    return write_template(old.root, "1.1.0", NEW)


def driver(repository: Path) -> Path:
    return repository / "src" / "triton_acme" / "driver.py"


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_an_unchanged_repository_becomes_what_is_made_now(
    repository: Path, new: Template, tmp_path: Path
) -> None:
    done = update(repository, new)
    (tmp_path / "fresh").mkdir()
    fresh = contents(make_acme(new, tmp_path / "fresh").path)
    fresh["docs/badge.svg"] = OLD["docs/badge.svg"]  # it is CI's
    assert contents(repository) == fresh
    assert os.access(repository / ".ci" / "run", os.X_OK)
    assert done == Update(
        "1.0.0",
        "1.1.0",
        (
            ".ci/run",
            ".copier-answers.yml",
            "README.md",
            "native/device.cpp",
            "src/triton_acme/driver.py",
            "src/triton_acme/fresh.py",
            "src/triton_acme/gone.py",
        ),
    )
    assert len(git(repository, "log", "--format=%H").split()) == 1  # to be looked at first


def test_what_the_vendor_changed_is_kept(repository: Path, new: Template) -> None:
    change(
        driver(repository),
        "def memset(self, address):\n        pass",
        "def memset(self, address):\n        set()",
    )
    (repository / "docs" / "badge.svg").write_text("<svg>runtime</svg>\n")
    (repository / "native" / "mine.cpp").write_text("int mine;\n")
    (repository / "README.md").unlink()
    commit(repository)
    done = update(repository, new)
    assert done.conflicts == ()
    text = driver(repository).read_text()
    assert "set()" in text
    assert "return 0" in text
    assert text.startswith("import sys\n")
    assert (repository / "docs" / "badge.svg").read_text() == "<svg>runtime</svg>\n"
    assert (repository / "native" / "mine.cpp").read_text() == "int mine;\n"
    assert "int two()" in (repository / "native" / "device.cpp").read_text()
    assert not (repository / "README.md").exists()
    assert (repository / "src" / "triton_acme" / "fresh.py").read_text() == 'NAME = "acme"\n'


def test_what_contradicts_is_marked(repository: Path, new: Template) -> None:
    change(driver(repository), "return 1", "return 7")
    commit(repository)
    done = update(repository, new)
    assert done.conflicts == ("src/triton_acme/driver.py",)
    assert set(done.conflicts) < set(done.changed)
    marked = re.search(
        r"<<<<<<< before updating\n(.*?)=======\n(.*?)>>>>>>> after updating\n",
        driver(repository).read_text(),
        re.DOTALL,
    )
    assert marked is not None
    assert "return 7" in marked[1]
    assert "return 0" in marked[2]
    new.release()
    with pytest.raises(DirtyTreeError):  # until it is resolved
        update(repository, Template(new.root, "1.2.0"))
    change(driver(repository), marked[0], marked[1])
    commit(repository)
    assert update(repository, new) == Update("1.1.0", "1.1.0")


def test_updates_follow_each_other(repository: Path, new: Template) -> None:
    change(driver(repository), "def memfree", "def memfree_of_mine")
    commit(repository)
    update(repository, new)
    commit(repository)
    new.release()
    newest = write_template(new.root, "2.0.0rc1", {**NEW, "native/device.cpp": "int three;\n"})
    assert update(repository, newest).conflicts == ()
    assert (repository / "native" / "device.cpp").read_text() == "int three;\n"
    assert "memfree_of_mine" in driver(repository).read_text()


def test_a_folder_of_a_larger_repository(old: Template, tmp_path: Path) -> None:
    around = tmp_path / "around"
    around.mkdir()
    git(around, "init", "-q")
    repository = make_acme(old, around / "chips").path
    change(driver(repository), "def memfree", "def memfree_of_mine")
    commit(around)
    old.release()
    new = write_template(old.root, "1.1.0", NEW)
    (around / "notes").write_text("not committed\n")
    done = update(repository, new)
    assert "src/triton_acme/driver.py" in done.changed
    assert "memfree_of_mine" in driver(repository).read_text()
    assert (around / "notes").read_text() == "not committed\n"
    assert git(around, "status", "--porcelain", "--", "notes") == "?? notes\n"


def test_the_same_version(repository: Path, old: Template) -> None:
    before = contents(repository)
    assert update(repository, old) == Update("1.0.0", "1.0.0")
    (repository / "half.txt").write_text("not committed\n")
    assert update(repository, old) == Update("1.0.0", "1.0.0")
    assert contents(repository) == {**before, "half.txt": "not committed\n"}


@pytest.mark.parametrize("how", ["changed", "new", "staged", "removed"])
def test_a_dirty_tree_is_refused(how: str, repository: Path, new: Template) -> None:
    if how == "changed":
        change(driver(repository), "return 1", "return 2")
    elif how == "removed":
        driver(repository).unlink()
    else:
        (repository / "half.txt").touch()
        if how == "staged":
            git(repository, "add", "half.txt")
    before = contents(repository)
    with pytest.raises(DirtyTreeError, match=r"half\.txt" if how in ("new", "staged") else r"driver\.py"):
        update(repository, new)
    assert contents(repository) == before


def test_a_repository_that_is_not_git_s(old: Template, new: Template, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "triton-acme")
    write_template(old.root, "1.0.0", OLD)
    repository = make_acme(old, tmp_path, own_repository=False).path
    write_template(old.root, "1.1.0", NEW)
    with pytest.raises(TemplateError, match="not in a git repository"):
        update(repository, new)
    git(repository, "init", "-q")
    with pytest.raises(DirtyTreeError, match="is not committed"):
        update(repository, new)


def test_without_git(repository: Path, new: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(TemplateError, match="git is not installed"):
        update(repository, new)


def test_a_newer_kit_made_it(repository: Path, old: Template) -> None:
    with pytest.raises(TemplateError, match=r"pip install 'triton-porting-kit>=1\.0\.0'"):
        update(repository, Template(old.root, "0.9"))


def test_a_version_that_is_not_there(repository: Path, old: Template) -> None:
    write_template(old.root, "1.1.0", NEW)
    with pytest.raises(TemplateError, match=r"not have the template of 1\.0\.0.*has 1\.1\.0"):
        update(repository, Template(old.root, "1.1.0"))


def test_an_archive_that_is_damaged(repository: Path, new: Template) -> None:
    before = contents(repository)
    new.archive("1.0.0").write_bytes(new.archive("1.0.0").read_bytes()[:100])
    with pytest.raises(TemplateError, match="install the kit again"):
        update(repository, new)
    assert contents(repository) == before


EDITS = {
    "no YAML": (r".*", "{ [", "is not YAML"),
    "another shape": (r".*", "- 1\n", "was edited"),
    "a number": (r'chip: "NPU"', "chip: 7", "was edited"),
    "empty": (r".*", "", "was edited"),
    "a key is gone": (r'vendor: "Acme"\n', "", "vendor is missing"),
    "another package": ("triton_acme", "triton_other", "package is 'triton_other'"),
    "another class": ('class_prefix: "Acme"', 'class_prefix: "Other"', "class_prefix is 'Other'"),
    "another name": ('name: "acme"', 'name: "other"', "backend is 'acme'"),
    "no name": ('name: "acme"', 'name: "a b"', "cannot be the name"),
    "a vendor with quotes": ('vendor: "Acme"', "vendor: 'a\"b'", "cannot be called"),
    "another version": ('_commit: "1.0.0"', '_commit: "1.1.0"', "_commit is '1.1.0'"),
    "no version": (r'"1\.0\.0"', '"first"', "is not a version"),
    "another source": ("git[+]triton", "https://triton", "_src_path is 'https"),
}


@pytest.mark.parametrize(("pattern", "text", "reason"), EDITS.values(), ids=EDITS.keys())
def test_answers_that_were_edited(
    pattern: str, text: str, reason: str, repository: Path, new: Template
) -> None:
    path = repository / ANSWERS
    count = 1 if pattern == ".*" else 0
    path.write_text(re.sub(pattern, text, path.read_text(), count=count, flags=re.DOTALL))
    commit(repository)
    before = contents(repository)
    with pytest.raises(AnswersError, match=re.escape(reason)) as caught:
        update(repository, new)
    assert "git checkout" in str(caught.value)
    assert contents(repository) == before


def test_answers_that_were_removed(repository: Path, new: Template) -> None:
    (repository / ANSWERS).unlink()
    commit(repository)
    with pytest.raises(AnswersError, match="`tpk new` created"):
        update(repository, new)


def test_capitals_of_classes_are_as_they_were_typed(old: Template, tmp_path: Path) -> None:
    from triton_porting_kit.porting.names import names_of
    from triton_porting_kit.porting.new import make

    made = make(names_of("TensorOne", {}), vendor="T", chip="C", into=tmp_path, template=old)
    old.release()
    update(made.path, write_template(old.root, "1.1.0", NEW))
    assert "class TensorOneDevice" in (made.path / "src" / "triton_tensorone" / "driver.py").read_text()


def test_everything_is_taken_back_where_copier_fails(
    repository: Path, old: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    before = contents(repository)
    old.release()
    new = write_template(old.root, "1.1.0", {**NEW, "zz.txt.jinja": "{{ 1 / 0 }}"})
    with pytest.raises(TemplateError, match="copier failed"):
        update(repository, new)
    assert contents(repository) == before
    assert git(repository, "status", "--porcelain") == ""
    assert list((tmp_path / "temporary").iterdir()) == []


def test_another_repository_of_the_environment_is_left_alone(
    repository: Path, new: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    before = contents(other / ".git")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert update(repository, new).conflicts == ()
    assert contents(other / ".git") == before

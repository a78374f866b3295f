"""Making a repository: what is in it, where it goes, what is refused, and that nothing is left where it fails."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from made_templates import OLD, contents, git, make_acme, write_template

from triton_porting_kit.errors import TemplateError
from triton_porting_kit.porting.template import Template


@pytest.fixture
def template(tmp_path: Path) -> Template:
    return write_template(tmp_path / "template", "1.0.0", OLD)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_names_stand_everywhere(template: Template, dest: Path) -> None:
    made = make_acme(template, dest)
    assert made.path == dest / "triton-acme"
    found = contents(made.path)
    assert set(found) == set(made.files)
    assert found["README.md"] == "# NPU of Acme\n\nKit 1.0.0.\n"
    assert found["src/triton_acme/driver.py"].startswith("class AcmeDevice:")
    assert not [name for name, text in found.items() if "{{" in name + text]
    assert os.access(made.path / ".ci" / "run", os.X_OK)
    assert not os.access(made.path / "README.md", os.X_OK)
    assert list(dest.iterdir()) == [made.path]


def test_answers_say_what_it_was_made_from(template: Template, dest: Path) -> None:
    held = yaml.safe_load((make_acme(template, dest).path / ".copier-answers.yml").read_text())
    assert held == {
        "_commit": "1.0.0",
        "_src_path": "git+triton-porting-kit:template",
        "name": "acme",
        "backend": "acme",
        "package": "triton_acme",
        "class_prefix": "Acme",
        "torch_device": "acme",
        "vendor": "Acme",
        "chip": "NPU",
        "shape": "npu",
        "kit_version": "1.0.0",
    }


def test_it_becomes_a_git_repository(template: Template, dest: Path) -> None:
    made = make_acme(template, dest)
    assert "is a git repository with a first commit" in made.git
    assert git(made.path, "status", "--porcelain", "--ignored") == ""
    assert sorted(git(made.path, "ls-files").split()) == list(made.files)
    assert len(git(made.path, "log", "--format=%H").split()) == 1
    assert stat.S_IMODE((made.path).stat().st_mode) & 0o500 == 0o500


def test_without_a_name_git_gets_one(
    template: Template, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        for key in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{key}", raising=False)
    monkeypatch.delenv("EMAIL", raising=False)
    made = make_acme(template, dest)
    assert "because git does not know your name" in made.git
    assert "tpk@localhost" in git(made.path, "log", "--format=%ae")


def test_hooks_and_keys_of_the_user_stay_out(
    template: Template, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-commit", "commit-msg"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[core]\nhooksPath={hooks}\nexcludesFile={tmp_path}/excludes\n[commit]\ngpgSign=true\n"
        "[user]\nname=v\nemail=v@x\nsigningKey=none\n"
    )
    (tmp_path / "excludes").write_text("*.cpp\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    made = make_acme(template, dest)
    assert not (tmp_path / "ran").exists()
    assert "native/device.cpp" in git(made.path, "ls-files")


def test_a_repository_around_it_is_left_alone(template: Template, dest: Path) -> None:
    git(dest, "init", "-q")
    made = make_acme(template, dest)
    assert f"is in the git repository {dest}" in made.git
    assert not (made.path / ".git").exists()
    assert git(dest, "status", "--porcelain") == "?? triton-acme/\n"


def test_git_makes_one_of_its_own(template: Template, dest: Path) -> None:
    git(dest, "init", "-q")
    made = make_acme(template, dest, own_repository=True)
    assert len(git(made.path, "log", "--format=%H").split()) == 1
    assert git(dest, "status", "--porcelain") == "?? triton-acme/\n"


def test_no_git_makes_none(template: Template, dest: Path) -> None:
    made = make_acme(template, dest, own_repository=False)
    assert "--no-git" in made.git
    assert not (made.path / ".git").exists()


def test_another_repository_of_the_environment_is_left_alone(
    template: Template, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a hook of another repository runs."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    before = contents(other / ".git")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    made = make_acme(template, dest)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert len(git(made.path, "log", "--format=%H").split()) == 1
    assert contents(other / ".git") == before


def test_without_git_it_is_made_all_the_same(
    template: Template, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(dest))
    made = make_acme(template, dest)
    assert "git is not installed" in made.git
    assert "src/triton_acme/driver.py" in made.files
    with pytest.raises(TemplateError, match="git is not installed"):
        make_acme(template, dest / "more", own_repository=True)
    assert not (dest / "more").exists()


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_is_not_touched(kind: str, template: Template, dest: Path) -> None:
    there = dest / "triton-acme"
    if kind == "folder":
        there.mkdir()
    elif kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to(dest / "nowhere")
    with pytest.raises(TemplateError, match="already exists"):
        make_acme(template, dest)
    assert list(dest.iterdir()) == [there]


def test_the_folder_is_made_if_need_be(template: Template, dest: Path) -> None:
    made = make_acme(template, dest / "a" / "b")
    assert made.path == dest / "a" / "b" / "triton-acme"


def test_a_destination_that_is_a_file(template: Template, dest: Path) -> None:
    (dest / "file").touch()
    for into in (dest / "file", dest / "file" / "deeper"):
        with pytest.raises(TemplateError, match="nothing can be written"):
            make_acme(template, into)
    assert (dest / "file").is_file()


BROKEN = {
    "an unknown filter": "{{ name | nothing_like_it }}",
    "a block that does not end": "{% if name %}",
    "a division by zero": "{{ 1 / 0 }}",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("into", ["", "a/b/c"])
def test_nothing_is_left_where_the_template_fails(text: str, into: str, dest: Path, tmp_path: Path) -> None:
    template = write_template(tmp_path / "template", "1.0.0", {**OLD, "zz.txt.jinja": text})
    with pytest.raises(TemplateError, match="copier failed"):
        make_acme(template, dest / into)
    assert list(dest.iterdir()) == []


def test_nothing_is_left_where_git_fails(
    template: Template, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *commit*) echo "no room" >&2; exit 1;; esac\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(TemplateError, match="no room"):
        make_acme(template, dest / "new")
    assert list(dest.iterdir()) == []


def test_nothing_is_left_after_an_interrupt(template: Template, dest: Path, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from made_templates import make_acme\n"
        "from triton_porting_kit.porting import engine\n"
        "from triton_porting_kit.porting.template import Template\n"
        "def stop(*a, **k):\n    Path(a[1]).mkdir(); raise KeyboardInterrupt\n"
        "engine.copy = stop\n"
        f"make_acme(Template(Path({str(template.root)!r}), '1.0.0'), Path({str(dest / 'new')!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in done.stderr
    assert list(dest.iterdir()) == []

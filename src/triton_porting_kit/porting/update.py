"""`update`: a newer kit's template into a repository that was made from an older one, keeping what was changed there.

The versions are written into a temporary git repository, a tag for each, so that copier has what it needs to merge
three ways: the template as it was, the template as it is, and the repository.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.errors import AnswersError, DirtyTreeError, NamingError, TemplateError
from triton_porting_kit.porting import engine, git
from triton_porting_kit.porting.names import following, title
from triton_porting_kit.porting.new import answers
from triton_porting_kit.porting.template import ANSWERS, Template, version_of


@dataclass(frozen=True)
class Update:
    """What an update did."""

    old: str
    """The version that the repository was made from, or brought to last."""
    new: str
    changed: tuple[str, ...] = ()
    """Files that are not as they were, relative to the repository, sorted."""
    conflicts: tuple[str, ...] = ()
    """Those of `changed` in which the template and the vendor changed the same lines."""


def update(folder: Path, template: Template | None = None) -> Update:
    """Bring a repository up to date with a template, by default this kit's. Nothing is committed.

    Raises `AnswersError` where it cannot be told what the repository was made from, `DirtyTreeError` where something
    is not committed, and `TemplateError` for versions that cannot be had, without git, or where copier fails: then
    the repository is as it was.
    """
    template = template or Template.own()
    folder = folder.absolute()
    was = read_answers(folder)
    old = was["kit_version"]
    if old == template.version:
        return Update(old, old)
    _check_version(old, template)
    _check_tree(folder)
    with tempfile.TemporaryDirectory(prefix="tpk-update-") as place:
        workshop = Path(place)
        repository = _history(template, (old, template.version), workshop / "template")
        try:
            engine.update(
                repository,
                folder,
                template.version,
                {"kit_version": template.version},
                answers_file=ANSWERS,
                workshop=workshop,
            )
        except BaseException:
            _restore(folder)
            raise
    changed = [line[3:] for line in _status(folder)]
    conflicts = git.run(folder, "diff", "--name-only", "--relative", "--diff-filter=U", "-z").split("\0")
    return Update(old, template.version, tuple(sorted(changed)), tuple(sorted(filter(None, conflicts))))


def read_answers(folder: Path) -> dict[str, str]:
    """What a repository was made from, by the names of the template's variables. Raises `AnswersError`."""
    path = folder / ANSWERS
    mend = f"`git log -- {ANSWERS}` shows whether it was there, `git checkout COMMIT -- {ANSWERS}` brings it back"

    def error(message: str) -> AnswersError:
        return AnswersError(
            f"{message}: without that file nobody knows what this repository was made from. Run this in a repository "
            f"that `tpk new` made; {mend}"
        )

    content = untrusted.read_bytes(path, untrusted.ANSWERS, error)
    held: Any = untrusted.parse_yaml(content, path, error)
    if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
        raise AnswersError(f"{path} does not hold what `tpk new` wrote: it was edited; {mend}")
    if wrong := _edited(held):
        raise AnswersError(f"{path} was edited: {wrong}; {mend}")
    return held


def _edited(held: dict[str, str]) -> str:
    """What in a file of answers cannot have been written by the kit; empty if nothing is."""
    expected = [
        "_commit",
        "_src_path",
        "name",
        "backend",
        "package",
        "vendor",
        "chip",
        "class_prefix",
        "kit_version",
    ]
    if missing := [key for key in expected if key not in held]:
        return f"{', '.join(missing)} is missing"
    try:
        names = following(held["name"])
        vendor, chip = title(held["vendor"], "vendor"), title(held["chip"], "chip")
    except NamingError as error:
        return str(error)
    follow = {**answers(names, vendor, chip, held["kit_version"]), "_commit": held["kit_version"]}
    follow["_src_path"] = f"git+{engine.SOURCE}"
    for key, value in follow.items():
        # Capitals of classes are as they were typed.
        if held[key] != value and not (key == "class_prefix" and held[key].lower() == value.lower()):
            return f"{key} is {held[key]!r}, and {value!r} follows from the rest"
    if version_of(held["kit_version"]) is None:
        return f"{held['kit_version']!r} is no version"
    return ""


def _check_version(old: str, template: Template) -> None:
    there, here = version_of(old), version_of(template.version)
    assert there is not None
    assert here is not None
    if there > here:
        raise TemplateError(
            f"this repository was made by the kit {old}, and this kit is {template.version}: run "
            f"`pip install 'triton-porting-kit>={old}'`"
        )
    if old not in template.versions():
        raise TemplateError(
            f"this kit has no template of {old}, which the repository was made from; it has "
            f"{', '.join(template.versions())}. `pip install triton-porting-kit=={old}` brings the kit that has"
        )


def _check_tree(folder: Path) -> None:
    if not git.available():
        raise TemplateError(
            "there is no git, by which changes of yours and of the template are joined: install it"
        )
    if git.top(folder) is None:
        raise TemplateError(
            f"{folder} is in no git repository, by which your changes are found: run `git init`, `git add .` and "
            "`git commit` there"
        )
    if not git.run(folder, "ls-files", "--", ANSWERS):
        raise DirtyTreeError(f"{ANSWERS} is not committed: run `git add .` and `git commit` first")
    if dirty := _status(folder):
        shown = "".join(f"\n  {line}" for line in dirty[:10]) + ("\n  ..." if len(dirty) > 10 else "")
        raise DirtyTreeError(
            f"{folder} has changes that are not committed; commit them, or put them away with `git stash -u`:{shown}"
        )


def _status(folder: Path) -> list[str]:
    """Lines like `?? path`, of the folder alone, with paths relative to it."""
    prefix = git.run(folder, "rev-parse", "--show-prefix").strip()
    lines = git.run(folder, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    return [line[:3] + line[3:].removeprefix(prefix) for line in lines.split("\0") if line]


def _history(template: Template, versions: tuple[str, ...], folder: Path) -> Path:
    """A git repository with these versions of a template, each of them tagged."""
    folder.mkdir()
    for version in versions:
        for path in sorted(folder.rglob("*"), reverse=True):
            if ".git" not in path.relative_to(folder).parts[:1]:
                path.unlink() if path.is_file() else path.rmdir()
        template.write(version, folder)
        begin = git.commit if (folder / ".git").exists() else git.start
        begin(folder, version)
        git.run(folder, *git.IDENTITY, "-c", "tag.gpgSign=false", "tag", version)
    return folder


def _restore(folder: Path) -> None:
    """Take back everything in a folder that had no changes."""
    git.run(folder, "restore", "--source=HEAD", "--staged", "--worktree", "--", ".", check=False)
    git.run(folder, "clean", "-fdq", "--", ".", check=False)

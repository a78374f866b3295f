"""`update` merges a newer kit's template into a repository that was created from an older one.

Both versions of the template are written to a temporary git repository with a tag for each. copier uses them for a
three-way merge of the old template, the new template and the repository.
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
from triton_porting_kit.porting.new import Shape, answers
from triton_porting_kit.porting.template import ANSWERS, Template, version_of


@dataclass(frozen=True)
class Update:
    """The result of an update."""

    old: str
    """The version of the template that the repository had."""
    new: str
    changed: tuple[str, ...] = ()
    """The files that changed, relative to the repository, sorted."""
    conflicts: tuple[str, ...] = ()
    """The files of `changed` in which the template and the vendor changed the same lines."""


def update(folder: Path, template: Template | None = None) -> Update:
    """Update a repository to a template, by default this kit's. Nothing is committed.

    Raises `AnswersError` if the version of the repository is unknown, `DirtyTreeError` for uncommitted changes, and
    `TemplateError` for versions that are not available, without git, or if copier fails. The repository is then
    unchanged.
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
    """Read the variables of the template that a repository was created with. Raises `AnswersError`."""
    path = folder / ANSWERS
    mend = f"`git log -- {ANSWERS}` shows its commits, and `git checkout COMMIT -- {ANSWERS}` restores it"

    def error(message: str) -> AnswersError:
        return AnswersError(
            f"{message}; this file records how the repository was created. Run this in a repository that `tpk new` "
            f"created; {mend}"
        )

    content = untrusted.read_bytes(path, untrusted.ANSWERS, error)
    held: Any = untrusted.parse_yaml(content, path, error)
    if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
        raise AnswersError(f"{path} was edited: it no longer has the form that `tpk new` wrote; {mend}")
    if wrong := _edited(held):
        raise AnswersError(f"{path} was edited: {wrong}; {mend}")
    return held


def _edited(held: dict[str, str]) -> str:
    """What was edited in a file of answers; empty if nothing was."""
    expected = [
        "_commit",
        "_src_path",
        "name",
        "backend",
        "package",
        "vendor",
        "chip",
        "class_prefix",
        "torch_device",
        "kit_version",
    ]
    if missing := [key for key in expected if key not in held]:
        return f"{', '.join(missing)} is missing"
    try:
        names = following(held["name"])
        vendor, chip = title(held["vendor"], "vendor"), title(held["chip"], "chip")
        shape = Shape(held.setdefault("shape", str(Shape.CORES)))  # the only one that there was at first
    except (NamingError, ValueError) as error:
        return str(error)
    follow = {**answers(names, vendor, chip, held["kit_version"], shape), "_commit": held["kit_version"]}
    follow["_src_path"] = f"git+{engine.SOURCE}"
    for key, value in follow.items():
        # The capitals of class names are the user's.
        if held[key] != value and not (key == "class_prefix" and held[key].lower() == value.lower()):
            return f"{key} is {held[key]!r}, but the other values require {value!r}"
    if version_of(held["kit_version"]) is None:
        return f"{held['kit_version']!r} is not a version"
    return ""


def _check_version(old: str, template: Template) -> None:
    there, here = version_of(old), version_of(template.version)
    assert there is not None
    assert here is not None
    if there > here:
        raise TemplateError(
            f"this repository was created or updated by kit {old}, and this is kit {template.version}: run "
            f"`pip install 'triton-porting-kit>={old}'`"
        )
    if old not in template.versions():
        raise TemplateError(
            f"this kit does not have the template of {old}, which the repository was created from; it has "
            f"{', '.join(template.versions())}. `pip install triton-porting-kit=={old}` installs the kit that has it"
        )


def _check_tree(folder: Path) -> None:
    if not git.available():
        raise TemplateError(
            "git is not installed, and the update needs it to merge your changes with the template's: install git"
        )
    if git.top(folder) is None:
        raise TemplateError(
            f"{folder} is not in a git repository, which the update needs to find your changes: run `git init`, "
            "`git add .` and `git commit` there"
        )
    if not git.run(folder, "ls-files", "--", ANSWERS):
        raise DirtyTreeError(f"{ANSWERS} is not committed: run `git add .` and `git commit` first")
    if dirty := _status(folder):
        shown = "".join(f"\n  {line}" for line in dirty[:10]) + ("\n  ..." if len(dirty) > 10 else "")
        raise DirtyTreeError(
            f"{folder} has uncommitted changes; commit them, or stash them with `git stash -u`:{shown}"
        )


def _status(folder: Path) -> list[str]:
    """The lines of `git status` for a folder, such as `?? path`, with paths relative to it."""
    prefix = git.run(folder, "rev-parse", "--show-prefix").strip()
    lines = git.run(folder, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    return [line[:3] + line[3:].removeprefix(prefix) for line in lines.split("\0") if line]


def _history(template: Template, versions: tuple[str, ...], folder: Path) -> Path:
    """Create a git repository with a tagged commit for each of these versions of a template."""
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
    """Undo all changes in a folder that had none before."""
    git.run(folder, "restore", "--source=HEAD", "--staged", "--worktree", "--", ".", check=False)
    git.run(folder, "clean", "-fdq", "--", ".", check=False)

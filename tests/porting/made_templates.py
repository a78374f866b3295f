"""Small templates that tests make up, and vendors who work on what came of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from triton_porting_kit.porting.names import names_of
from triton_porting_kit.porting.new import Made, make
from triton_porting_kit.porting.template import Template

OLD = {
    "README.md.jinja": "# {{ chip }} of {{ vendor }}\n\nKit {{ kit_version }}.\n",
    "src/{{ package }}/driver.py.jinja": (
        "class {{ class_prefix }}Device:\n"
        '    """A chip."""\n\n'
        "    def memalloc(self, size):\n        return 1\n\n"
        "    def memfree(self, address):\n        pass\n\n"
        "    def memset(self, address):\n        pass\n"
    ),
    "src/{{ package }}/gone.py": "gone = 1\n",
    "native/device.cpp": "int one() { return 1; }\n",
    "docs/badge.svg": "<svg>not judged yet</svg>\n",
    ".ci/run": "#!/bin/sh\n",
    ".gitignore.jinja": "/build/\n",
}
NEW = {
    **{name: text for name, text in OLD.items() if "gone" not in name},
    "src/{{ package }}/driver.py.jinja": OLD["src/{{ package }}/driver.py.jinja"]
    .replace("return 1", "return 0")
    .replace("class {{", "import sys\n\n\nclass {{"),
    "src/{{ package }}/fresh.py.jinja": 'NAME = "{{ backend }}"\n',
    "native/device.cpp": "int one() { return 1; }\nint two() { return 2; }\n",
    "docs/badge.svg": "<svg>not judged so far</svg>\n",
    ".ci/run": "#!/bin/sh\nset -e\n",
}


def write_template(root: Path, version: str, files: Mapping[str, str]) -> Template:
    """A template of these files, with the real `copier.yml` and the real file of answers."""
    own = Template.own()
    real = {
        name: content for name, content, _ in own.files() if "answers_file" in name or name == "copier.yml"
    }
    for path in sorted(root.glob("template/**/*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    for name, content in (real | {f"template/{name}": text.encode() for name, text in files.items()}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name.endswith(".ci/run") else 0o644)
    return Template(root, version)


def make_acme(template: Template, into: Path, **options: bool | None) -> Made:
    """A repository of the backend acme."""
    return make(names_of("acme", {}), vendor="Acme", chip="NPU", into=into, template=template, **options)


def git(folder: Path, *arguments: str) -> str:
    """What git prints. Its commits are a vendor's."""
    who = {f"GIT_{role}_{key}": "vendor@x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | who, capture_output=True, text=True, check=True
    )
    return done.stdout


def commit(folder: Path) -> None:
    """What a vendor does after changing something."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "work")


def contents(folder: Path) -> dict[str, str]:
    """Every file by its path, those of git left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }

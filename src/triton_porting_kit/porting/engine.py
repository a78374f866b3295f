"""Running copier, which creates repositories from templates and updates them, as a program in its own environment.

This keeps it from using a repository named in git's environment variables, the user's settings for copier, and its
cache of templates.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from triton_porting_kit.errors import TemplateError
from triton_porting_kit.porting import git

SOURCE = "triton-porting-kit:template"
"""The source that repositories record. During an update, git's configuration maps it to the actual place."""


def copy(template: Path, folder: Path, answers: Mapping[str, str], workshop: Path) -> None:
    """Create a repository from a template. `workshop`: a folder for temporary files. Raises `TemplateError`."""
    data = workshop / "answers.json"  # JSON is YAML
    data.write_text(json.dumps(dict(answers)), encoding="utf-8")
    _copier(workshop, {}, "copy", "--defaults", "--quiet", "--data-file", data, template, folder)


def update(
    repository: Path,
    folder: Path,
    version: str,
    answers: Mapping[str, str],
    *,
    answers_file: str,
    workshop: Path,
) -> None:
    """Update a folder to another version of the template. `answers`: those that change.

    `repository`: a git repository with tags for both versions. Raises `TemplateError`.
    """
    found = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": SOURCE,
    }
    data = workshop / "answers.json"
    data.write_text(json.dumps(dict(answers)), encoding="utf-8")
    _copier(
        workshop,
        found,
        *("update", "--defaults", "--quiet", "--conflict", "inline", "--vcs-ref", version),
        *("--answers-file", answers_file, "--data-file", data, folder),
    )


def _copier(workshop: Path, variables: Mapping[str, str], *arguments: str | Path) -> None:
    settings = workshop / "settings.yml"
    settings.write_text("{}\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "copier", *map(str, arguments)],
        env=git.environment(
            {
                "COPIER_SETTINGS_PATH": str(settings),
                "COPIER_CACHE_DIR": str(workshop / "cache"),
                "TMPDIR": str(workshop),
                "PYTHONWARNINGS": "ignore",
                **variables,
            }
        ),
        cwd=workshop,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise TemplateError(f"copier failed: {' '.join(said[-3:]) or 'it printed no message'}")

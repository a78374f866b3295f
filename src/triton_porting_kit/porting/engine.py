"""copier, which writes repositories from templates and updates them: run as a program, in an environment of its own.

So neither a repository named in git's variables, nor settings that the user keeps for copier, nor its cache of
templates is touched, whatever the process is that asks.
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
"""What repositories say that they were made from; git is told where that is for as long as an update takes."""


def copy(template: Path, folder: Path, answers: Mapping[str, str], workshop: Path) -> None:
    """Write a template's repository. `workshop`: a folder for what is needed meanwhile. Raises `TemplateError`."""
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
    """Bring a folder from its version of the template to another, `answers` being those that change.

    `repository`: git's, with a tag for both versions. Raises `TemplateError`.
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
        raise TemplateError(f"copier could not write it: {' '.join(said[-3:]) or 'it said nothing'}")

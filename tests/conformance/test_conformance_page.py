"""docs/conformance.md says what there is: options, statuses, levels, features, and an example that works."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from triton_porting_kit.cli.app import app
from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.conformance.profile import FEATURES, load
from triton_porting_kit.conformance.status import Status

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text()


def test_every_option_is_described() -> None:
    (command,) = (c for name, c in typer.main.get_command(app).commands.items() if name == "conform")  # type: ignore[attr-defined]
    options = {max(parameter.opts, key=len) for parameter in command.params}
    assert len(options) > 15
    assert {option for option in options if f"`{option}" not in PAGE} == set()


def test_every_status_level_and_feature_is_described() -> None:
    assert {status for status in Status if f"\n| {status} |" not in PAGE} == set()
    assert {level for level in LEVELS if f"\n| `{level}` |" not in PAGE} == set()
    assert {feature for feature in FEATURES if f"`{feature}`" not in PAGE} == set()


def test_the_example_of_a_profile_works(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "conformance.toml"
    path.write_text(example)
    profile = load(path)
    assert len(profile.entries) == 3
    profile.verify_patterns(catalogue.checks(["runtime", "language", "kernels"]))

"""The command itself."""

from __future__ import annotations

from cli_helpers import Tpk

import triton_porting_kit


def test_version(tpk: Tpk) -> None:
    assert tpk("--version").output == f"tpk {triton_porting_kit.__version__}\n"


def test_help_names_the_commands_and_shows_examples(tpk: Tpk) -> None:
    output = tpk("--help").output
    assert all(command in output for command in ("doctor", "demo", "compile", "verify", "report"))
    assert "tpk compile add.py:add_kernel" in tpk("compile", "--help").output


def test_unknown_commands_are_refused(tpk: Tpk) -> None:
    done = tpk("fly")
    assert done.status == 2
    assert "fly" in done.errors

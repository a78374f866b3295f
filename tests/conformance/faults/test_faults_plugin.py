"""Where the test backend is found, and that nothing of it stays."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from triton_porting_kit.conformance.faults.plugin import NAME, environment, installed


def ask(folder: Path, fault: str, question: str) -> str:
    variables = {**os.environ, **environment(folder, fault), "TRITON_DEFAULT_BACKEND": NAME}
    done = subprocess.run(
        [sys.executable, "-c", question], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_triton_finds_it_in_the_ordinary_way() -> None:
    question = (
        "import triton; from triton.runtime import driver; print(driver.active.get_current_target().arch)"
    )
    with installed() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert ask(folder, "sub-swapped", question).endswith("-sub-swapped")
        assert ask(folder, "none", question).endswith("-none")
    assert not folder.exists()


def test_it_is_not_there_otherwise() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from triton.backends import backends; print(sorted(backends))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert NAME not in done.stdout


def test_the_other_backends_are_as_they_were() -> None:
    question = (
        "from triton.backends import backends; cpu = backends['cpu']; "
        "print(cpu.compiler.supports_target.__module__, cpu.driver.backend_name)"
    )
    with installed() as folder:
        assert ask(folder, "all-targets", question) == "triton_porting_kit.backends.cpu.compiler cpu"

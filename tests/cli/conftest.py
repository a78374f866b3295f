"""A file of kernels that lies anywhere, and `tpk` called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import KERNELS, Outcome, Tpk

from triton_porting_kit.cli import main


@pytest.fixture
def tpk(capfdbinary: pytest.CaptureFixture[bytes]) -> Tpk:
    def call(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        written = capfdbinary.readouterr()
        return Outcome(
            int(end.value.code or 0),
            written.out.decode(errors="replace"),
            written.err.decode(errors="replace"),
        )

    return call


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A folder with `kernels.py` in it."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path

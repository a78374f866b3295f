"""What every pytest loads where the kit is installed: next to nothing, unless it is to run the conformance suite.

It stands beside the kit's package, not in it: importing anything of that imports Triton with all its backends, which is
no business of other projects' tests.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

SUITE = "triton_porting_kit.conformance"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Load the suite's plugin, with its options, where the arguments name the suite."""
    if not any(str(argument).partition("::")[0] == SUITE for argument in args):
        return
    # Processes of pytest run no kernel. They do without the backend that is judged: one that crashes when it is
    # imported crashes a worker.
    before = os.environ.get("TRITON_BACKENDS_IN_TREE")
    os.environ["TRITON_BACKENDS_IN_TREE"] = "1"
    try:
        early_config.pluginmanager.import_plugin(f"{SUITE}.plugin")
    finally:
        if before is None:
            del os.environ["TRITON_BACKENDS_IN_TREE"]
        else:
            os.environ["TRITON_BACKENDS_IN_TREE"] = before

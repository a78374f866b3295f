"""The CPU backend by way of the linalg form and upstream's passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_porting_kit.conformance.language.source import make_kernel

sys.path.insert(0, str(Path(__file__).parent / "vendor_site"))


@pytest.fixture(scope="module")
def through_linalg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels are compiled by way of linalg; none that was compiled otherwise is used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPK_FORM", "linalg")
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("linalg-cache")))
        make_kernel.cache_clear()
        yield
        make_kernel.cache_clear()

"""The list of what is public: all of it is there, and the page says the same."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from triton_porting_kit.public import MODULES, PARTS, is_public

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", [*PARTS, *MODULES])
def test_it_can_be_imported(name: str) -> None:
    module = importlib.import_module(f"triton_porting_kit.{name}")
    assert name not in PARTS or module.__all__


def test_the_contract_lists_the_same() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text()
    paragraph = text[text.index("The public names are") :].split("\n\n")[0]
    listed = re.findall(r"`([\w.]+)`", paragraph[: paragraph.index(". `triton_porting_kit.public`")])
    assert listed == ["__all__", *PARTS, *MODULES]


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("triton_porting_kit.driver", "Device", True),
        ("triton_porting_kit.driver", "InvalidArgument", False),
        ("triton_porting_kit.driver.device", "Device", False),
        ("triton_porting_kit.driver.adapter", "TritonDriver", True),
        ("triton_porting_kit.driver.adapter", "_CPP_TYPES", False),
        ("triton_porting_kit.toolchain", "compat", True),
        ("triton_porting_kit.binaries", "elf", False),
        ("triton_porting_kit.toolchain.compat", "", True),
        ("triton_porting_kit", "errors", True),
        ("triton_porting_kit", "replay", False),
    ],
)
def test_is_public(module: str, name: str, expected: bool) -> None:
    assert is_public(module, name) == expected

"""Repositories made by `tpk new`, under names that were never used before."""

from __future__ import annotations

import os
import random
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from installing import run

from triton_porting_kit.errors import NamingError
from triton_porting_kit.porting.names import MAXIMUM, MAXIMUM_TITLE, Names, names_of

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TITLE = LETTERS + LETTERS.upper() + "0123456789 -.,&+()éßŻ"


@dataclass(frozen=True)
class Repository:
    """One of them."""

    path: Path
    names: Names
    vendor: str
    chip: str
    shape: str

    @property
    def sources(self) -> dict[str, str]:
        """Every file that git has, by its path."""
        listed = run(["git", "ls-files"], cwd=self.path).split()
        return {name: (self.path / name).read_text() for name in listed}


class Maker:
    """Names from a seed: that of `TPK_TEMPLATE_SEED`, or another each time."""

    def __init__(self) -> None:
        self.seed = int(os.environ.get("TPK_TEMPLATE_SEED") or secrets.randbits(32))
        self._random = random.Random(self.seed)

    def name(self, length: str) -> str:
        """A name as it may be typed: `short`, `normal` or `long`."""
        while True:
            found = self._name(length)
            try:
                names_of(found)
            except NamingError:
                continue
            return found

    def title(self, length: str) -> str:
        """What a vendor or a chip may be called."""
        if length == "normal":
            return self._word(6).capitalize()
        count = 1 if length == "short" else MAXIMUM_TITLE
        while True:
            found = "".join(self._random.choices(TITLE, k=count))
            if found == " ".join(found.split()) and not found.startswith("-"):
                return found

    def make(self, tpk: Path, length: str, dest: Path, shape: str = "npu") -> Repository:
        """Make a repository, as a vendor does, and say what it was made from: pytest shows that of tests that fail."""
        name, vendor, chip = self.name(length), self.title(length), self.title(length)
        command = ["new", name, "--vendor", vendor, "--chip", chip, "--dest", str(dest)]
        command += [] if shape == "npu" else ["--shape", shape]  # the default
        print(f"TPK_TEMPLATE_SEED={self.seed}: tpk {command}")
        run([tpk, *command])
        names = names_of(name)
        return Repository(dest / names.repository, names, vendor, chip, shape)

    def _name(self, length: str) -> str:
        if length == "short":
            return self._word(1)
        if length == "normal":
            return f"{self._word(4)}-{self._word(3)}{self._random.randrange(100)}"
        word = "".join(c.upper() if self._random.random() < 0.3 else c for c in self._word(MAXIMUM))
        return re.sub(r"^(.{7}).(.{5}).", r"\1-\2_", word)

    def _word(self, length: int) -> str:
        return "".join(self._random.choices(LETTERS, k=length))

"""The porting guide, walked from its first command to its last as a newcomer would, with what it says is printed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.installing import ROOT
from triton_porting_kit.porting import names, new

GUIDE = ROOT / "docs" / "porting-guide.md"
_BLOCK = re.compile(r"^```(sh|sh fails|text)\n(.*?)^```$", re.M | re.S)
_HEADING = re.compile(r"^## (.*)$", re.M)
_STATE = "state.sh"


@dataclass
class Block:
    """Commands of the guide, and the lines that it says they print."""

    heading: str
    commands: str
    fails: bool
    printed: tuple[str, ...] = ()


def blocks(text: str) -> list[Block]:
    """The guide's blocks of commands, in order."""
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        if match[1] == "text":
            found[-1].printed += tuple(match[2].splitlines())
        else:
            heading = _HEADING.findall(text[: match.start()])[-1]
            found.append(Block(heading, match[2], fails=match[1] == "sh fails"))
    return found


def says(output: str, line: str) -> bool:
    """Whether a line of `output` has the parts of `line` between ellipses in this order, whatever the blanks."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in line.split("…"))
    return re.search(r".*".join(parts), output) is not None


def run(block: Block, folder: Path) -> str:
    """Run a block where the one before ended, with its environment; returns what it printed."""
    state = folder / _STATE
    script = f"set -e; . {state}; set -x\n{block.commands}\n{{ set +x; }} 2>/dev/null\n"
    script += f'declare -px > {state}; echo "cd $PWD" >> {state}'
    done = subprocess.run(
        ["bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=900,
    )
    assert (done.returncode != 0) == block.fails, f"{block.heading}: {done.stdout}"
    return done.stdout


def test_the_guide_is_read_whole() -> None:
    found = blocks(GUIDE.read_text(encoding="utf-8"))
    assert len(found) > 20
    assert sum(block.fails for block in found) == 6
    assert sum(bool(block.printed) for block in found) > 8


def test_says() -> None:
    assert says("a  12 b\nc", "a … b")
    assert says("x: runtime   fail  3 pass", "runtime fail 3 pass")
    assert not says("a\nb", "a … b")
    assert not says("runtime fail", "runtime pass")


def test_the_patches_fit_new_repositories(tmp_path: Path) -> None:
    applied = set()
    repository = tmp_path
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"tpk new (\w+) --vendor Acme --chip (\w+)( --shape cores)?", line):
            shape = new.Shape.CORES if found[3] else new.Shape.NPU
            repository = new.make(
                names.names_of(found[1]),
                vendor="Acme",
                chip=found[2],
                into=tmp_path,
                own_repository=False,
                shape=shape,
            ).path
        elif line.startswith('cp "$KIT"/docs/porting-guide/runtime/'):
            source = GUIDE.parent / "porting-guide" / "runtime"
            shutil.copytree(source, repository / "native", dirs_exist_ok=True)
        elif found := re.fullmatch(r"git apply (-R )?\"\$KIT/(.*)\"", line):
            command = ["git", "apply", *(found[1] or "").split(), ROOT / found[2]]
            subprocess.run(command, cwd=repository, check=True)
            applied.add(ROOT / found[2])
    assert applied == set((ROOT / "docs" / "porting-guide").glob("*.patch"))
    native = tmp_path / "triton-acme" / "native"
    assert [path.name for path in native.iterdir() if "vnpu" in path.read_text()] == []


def test_the_sizes_of_the_chapter_on_memory(tmp_path: Path) -> None:
    """Its commands that need no installed backend."""
    called = names.names_of("n100")
    made = new.make(called, vendor="Acme", chip="N100", into=tmp_path, own_repository=False)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / _STATE).write_text(f"export COLUMNS=200 PATH={shlex.quote(path)}\ncd {made.path}\n")
    planned = [block for block in blocks(GUIDE.read_text(encoding="utf-8")) if "tpk fit" in block.commands]
    assert len(planned) == 2
    for block in planned:
        commands = [line for line in block.commands.splitlines() if not line.startswith("tpk conform")]
        output = run(Block(block.heading, "\n".join(commands), fails=False), tmp_path)
        wanted = [line for line in block.printed if not line.startswith("kernels")]
        assert len(wanted) == 2
        for line in wanted:
            assert says(output, line), output


@pytest.mark.slow  # a kit and ten backends are built, and judged: some ten minutes
def test_every_command(tmp_path: Path) -> None:
    without = {"VIRTUAL_ENV", "PYTHONPATH", "TRITON_DEFAULT_BACKEND"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    exports = {**environment, "KIT": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "200"}
    written = subprocess.run(
        ["bash", "-c", f"declare -px {' '.join(exports)}"],
        env=exports,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / _STATE).write_text(f"{written.stdout}\ncd {tmp_path}\n")
    for block in blocks(GUIDE.read_text(encoding="utf-8")):
        output = run(block, tmp_path)
        for line in block.printed:
            assert says(output, line), f"{block.heading}: {line!r} is not in\n{output}"

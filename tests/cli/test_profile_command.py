"""The command `tpk profile`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from npus import ADD, Npu, build
from triton_porting_kit.chips import load

description = load("n1")
binary = build(Path(sys.argv[1]), ADD, description)
from chips import Chip
with Chip(memory_bytes=1 << 28) as chip:
    assert chip.config().description.decode() == description.text
    x = chip.alloc(1 << 16)
    function = chip.symbol(chip.load(binary), "add")
    for _ in range(3):
        chip.launch(function, (16, 1, 1), x, x, x, 1 << 14)
    chip.synchronize()
sys.exit(5)
"""


def profile(folder: Path, *arguments: str, columns: int = 120) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VNPU_")}
    command = [sys.executable, "-m", "triton_porting_kit.cli", "profile", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**environment, "COLUMNS": str(columns)},
        check=False,
    )


def test_a_program_on_a_chip(tmp_path: Path) -> None:
    tests = str(ROOT / "tests" / "driver" / "virtual")
    (tmp_path / "program.py").write_text(PROGRAM.format(tests=tests))
    done = profile(tmp_path, "--chip", "n1", "--dest", "out", "program.py", str(tmp_path))
    assert done.returncode == 5, done.stderr
    assert "on n1, by the chip's clock" in done.stdout
    events = json.loads((tmp_path / "out" / "trace.json").read_text())["traceEvents"]
    transfers = [event for event in events if event["name"] in ("global -> vector", "vector -> global")]
    assert sum(event["args"]["bytes"] for event in transfers) == 3 * 3 * (1 << 16)
    launches = [event for event in events if event["name"] == "add"]
    assert [event["args"]["programs"] for event in launches] == [16] * 3
    starts = [(event["ts"], event["dur"]) for event in launches]
    assert starts[1][0] == starts[0][0] + starts[0][1]
    assert "add on n1" in (tmp_path / "out" / "add.svg").read_text()
    page = (tmp_path / "out" / "profile.html").read_text()
    assert "Profile of a simulated chip" in page
    # The array is read twice and written once; reading it once would do.
    assert f'"global_bytes":{3 * 3 * (1 << 16)}.0,"needed_bytes":{3 * 2 * (1 << 16)}.0' in page
    assert "589.8 kB" in done.stdout
    assert "393.2 kB" in done.stdout


def test_nothing_is_cut_off_in_a_narrow_terminal(tmp_path: Path) -> None:
    tests = str(ROOT / "tests" / "driver" / "virtual")
    (tmp_path / "program.py").write_text(PROGRAM.format(tests=tests))
    done = profile(tmp_path, "--chip", "n1", "--dest", "out", "program.py", str(tmp_path), columns=60)
    assert "…" not in done.stdout
    said = " ".join(done.stdout.split())
    assert "add runs 3; us " in said
    assert "; moved 589.8 kB; needed 393.2 kB; cores wait for " in said


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("")
    (tmp_path / "wrong.toml").write_text("name = 3")
    for arguments, words in (
        (("missing.py",), "there is no file missing.py"),
        (("nothing.py",), "name a chip: --chip ascend910b, --chip n1, --chip single"),
        (
            ("--chip", "n2", "nothing.py"),
            "there is no chip 'n2', nor a file of that name; there are ascend910b",
        ),
        (("--chip", ".", "nothing.py"), "the description . cannot be read: Is a directory"),
        (("--chip", "wrong.toml", "nothing.py"), "wrong.toml:1: name is 3"),
        (("--chip", "n1", "nothing.py"), "the program opened no virtual NPU with a description"),
    ):
        done = profile(tmp_path, *arguments)
        assert done.returncode != 0
        assert words in " ".join(done.stderr.split()), done.stderr

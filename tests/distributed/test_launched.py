"""Programs of several ranks as users start them: torchrun, a group of torch, TCP without torch."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SHIFT, REDUCE = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "distributed.md").read_text(), re.MULTILINE | re.DOTALL
)
NO_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, NoTorch())
"""


@pytest.fixture
def environment(cache: Path) -> dict[str, str]:
    return os.environ | {"TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": str(cache)}


def test_the_first_program_of_the_page_by_torchrun(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(SHIFT)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "--master-addr", "127.0.0.1", "--master-port", str(free_port()), str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert sorted(re.findall(r"rank \d has \d", done.stdout)) == ["rank 0 has 1", "rank 1 has 0"], done.stderr


def test_the_second_program_of_the_page_in_a_process_group(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("torch")
    path, port = tmp_path / "program.py", free_port()
    path.write_text("import torch\ntorch.distributed.init_process_group('gloo')\n" + REDUCE)
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [_start(path, environment, None, rank, None) for rank in range(2)]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [out.strip() for out, _ in outputs] == ["rank 0 has 3", "rank 1 has 3"], outputs


def _start(
    path: Path, environment: dict[str, str], port: int | None, rank: int, token: str | None
) -> subprocess.Popen[str]:
    """`port`: where ranks meet over TCP without torch; None: as `environment` says."""
    given = environment | {"RANK": str(rank), "WORLD_SIZE": "2"}
    if port is not None:
        given["TPK_RENDEZVOUS"] = f"tcp://127.0.0.1:{port}"
    if token is not None:
        given["TPK_GROUP_TOKEN"] = token
    return subprocess.Popen(
        [sys.executable, path], env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_over_tcp_without_torch(tmp_path: Path, environment: dict[str, str]) -> None:
    """A process that does not know the secret is refused, and does not keep the others from meeting."""
    path, port = tmp_path / "program.py", free_port()
    path.write_text(NO_TORCH + SHIFT)
    token = secrets.token_hex(16)
    first = _start(path, environment, port, 0, token)
    stranger = _start(path, environment, port, 1, "wrong")
    _, error = stranger.communicate(timeout=300)
    assert "RendezvousError" in error
    assert "has another secret" in error
    second = _start(path, environment, port, 1, token)
    outputs = [process.communicate(timeout=300) for process in (first, second)]
    assert [out.strip() for out, _ in outputs] == ["rank 0 has 1", "rank 1 has 0"], outputs


def test_a_secret_is_needed_over_tcp(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(SHIFT)
    _, error = _start(path, environment, 1, 0, None).communicate(timeout=300)
    assert "RendezvousError" in error
    assert "set TPK_GROUP_TOKEN to the same random text" in error

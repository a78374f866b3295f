"""The rendezvous by itself: what the environment says, and ranks that do not come."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from ports import free_port

from triton_porting_kit.distributed import from_environment
from triton_porting_kit.distributed.rendezvous import Alone, FolderRendezvous
from triton_porting_kit.distributed.tcp import TcpRendezvous
from triton_porting_kit.errors import RankLost, RendezvousError


def test_a_process_alone() -> None:
    found = from_environment({})
    assert isinstance(found, Alone)
    assert found.exchange(b"one") == [b"one"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is ''"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x'"),
        ({"RANK": "2", "WORLD_SIZE": "2", "TPK_RENDEZVOUS": "file:/"}, "rank 2 of 2 ranks"),
        ({"TPK_RENDEZVOUS": "file:/x"}, "but RANK and WORLD_SIZE are not"),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "TPK_RENDEZVOUS": "udp://a"},
            "set it to file:/folder or tcp://host:port",
        ),
        ({"RANK": "0", "WORLD_SIZE": "2", "TPK_RENDEZVOUS": "tcp://localhost:1"}, "set TPK_GROUP_TOKEN"),
        ({"RANK": "0", "WORLD_SIZE": "2", "TPK_RENDEZVOUS": "file:/nowhere/at/all"}, "is not a folder"),
        ({"RANK": "0", "WORLD_SIZE": "2", "TPK_GROUP_TOKEN": "x"}, "MASTER_PORT is ''"),
    ],
)
def test_environments_that_say_too_little(given: dict[str, str], message: str) -> None:
    with pytest.raises(RendezvousError, match=message):
        from_environment(given)


def test_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(RendezvousError, match="lets others write to it"):
        FolderRendezvous(tmp_path, 0, 2, 1.0)


def test_a_folder_that_was_used_before(tmp_path: Path) -> None:
    FolderRendezvous(tmp_path, 0, 1, 1.0).exchange(b"")
    with pytest.raises(RendezvousError, match="the folder was used before"):
        FolderRendezvous(tmp_path, 0, 1, 1.0).exchange(b"")


def test_a_rank_that_is_late(tmp_path: Path) -> None:
    with pytest.raises(RendezvousError, match=r"rank 0 has waited 0.2 s for rank 1 of 2"):
        FolderRendezvous(tmp_path, 0, 2, 0.2).exchange(b"")
    with pytest.raises(RendezvousError, match=r"rank 0 has waited 0.2 s for rank 1 of 2"):
        TcpRendezvous("127.0.0.1", 0, 0, 2, b"secret", 0.2)


def _in_threads(ranks: int, port: int, act: Any) -> list[Any]:
    """What `act` returns or raises for each rank of a group over TCP, one thread each."""
    found: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        try:
            found[rank] = act(TcpRendezvous("127.0.0.1", port, rank, ranks, b"secret", 60.0))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture
def port() -> int:
    return free_port()


def test_bytes_go_to_all_ranks_over_tcp(port: int) -> None:
    def act(met: TcpRendezvous) -> list[list[bytes]]:
        return [met.exchange(bytes([met.rank]) * size) for size in (0, 1, 70_000)]

    expected = [[bytes([rank]) * size for rank in range(3)] for size in (0, 1, 70_000)]
    assert _in_threads(3, port, act) == [expected] * 3


def test_a_connection_that_ends(port: int) -> None:
    def act(met: TcpRendezvous) -> Any:
        if met.rank == 1:
            return met.close()
        return met.exchange(b"")

    lost, _ = _in_threads(2, port, act)
    assert isinstance(lost, RankLost)
    assert lost.rank == 1

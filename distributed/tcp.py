"""A rendezvous over TCP without torch: rank 0 listens, and every rank proves that it knows a secret.

Nobody who does not know it can join, or learn it from the connection. The bytes themselves are not encrypted.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import select
import socket
import struct
import time

from triton_porting_kit.distributed.rendezvous import Rendezvous
from triton_porting_kit.errors import RankLost, RendezvousError

_NONCE = 32
_PROOF = 32
_HELLO = struct.Struct("<II")
_LENGTH = struct.Struct("<Q")
_LONGEST = 1 << 24
_STRANGER_SECONDS = 10.0
"""How long somebody who connects may take to prove that they know the secret."""
_POLL_SECONDS = 0.1


class TcpRendezvous(Rendezvous):
    """Ranks connected to rank 0, which listens at `host` and `port`."""

    def __init__(self, host: str, port: int, rank: int, ranks: int, token: bytes, timeout: float) -> None:
        super().__init__(rank, ranks, timeout)
        self._token = token
        self._deadline = time.monotonic() + timeout
        self._peers: dict[int, socket.socket] = {}
        try:
            if rank == 0:
                self._listen(host, port)
            else:
                self._peers[0] = self._connect(host, port)
        except BaseException:
            self.close()
            raise

    def exchange(self, content: bytes) -> list[bytes]:
        self._deadline = time.monotonic() + self.timeout
        if self.rank:
            self._send(0, content)
            packed = self._receive(0)
            found = []
            while packed:
                (length,) = _LENGTH.unpack_from(packed)
                found.append(packed[_LENGTH.size : _LENGTH.size + length])
                packed = packed[_LENGTH.size + length :]
            return found
        found = [content, *(self._receive(rank) for rank in range(1, self.ranks))]
        packed = b"".join(_LENGTH.pack(len(each)) + each for each in found)
        for rank in range(1, self.ranks):
            self._send(rank, packed)
        return found

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    # --- joining -------------------------------------------------------------------------------------------

    def _listen(self, host: str, port: int) -> None:
        with socket.create_server((host, port), backlog=self.ranks) as server:
            while len(self._peers) < self.ranks - 1:
                server.settimeout(max(0.0, self._deadline - time.monotonic()) or 0.001)
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    missing = next(rank for rank in range(1, self.ranks) if rank not in self._peers)
                    raise self._late(missing) from None
                connection.settimeout(_STRANGER_SECONDS)
                try:
                    rank, ranks = self._admit(connection)
                except (OSError, EOFError):  # a stranger, who must not keep the others from meeting
                    connection.close()
                    continue
                if ranks != self.ranks or not 0 < rank < self.ranks or rank in self._peers:
                    connection.close()
                    raise RendezvousError(
                        f"a process joined as rank {rank} of {ranks}, in a group of {self.ranks} ranks of which "
                        f"{sorted({0, *self._peers})} are there; give each process a RANK of its own, and all the same "
                        "WORLD_SIZE"
                    )
                self._peers[rank] = connection

    def _admit(self, connection: socket.socket) -> tuple[int, int]:
        """Rank and number of ranks of a process that knows the secret. Raises `EOFError` for others."""
        mine = secrets.token_bytes(_NONCE)
        connection.sendall(mine)
        answer = _read(connection, _NONCE + _HELLO.size + _PROOF)
        said, proof = answer[:-_PROOF], answer[-_PROOF:]
        if not hmac.compare_digest(proof, self._proof(b"rank", mine + said)):
            raise EOFError
        connection.sendall(self._proof(b"root", said + mine))
        rank, ranks = _HELLO.unpack(said[_NONCE:])
        return rank, ranks

    def _connect(self, host: str, port: int) -> socket.socket:
        while True:
            try:
                connection = socket.create_connection((host, port), timeout=self.timeout)
                break
            except OSError as error:
                if time.monotonic() > self._deadline:
                    raise RendezvousError(
                        f"rank {self.rank} cannot reach rank 0 at {host}:{port}: {error}; is rank 0 running?"
                    ) from error
                time.sleep(0.02)
        self._peers[0] = connection
        try:
            theirs = _read(connection, _NONCE)
            said = secrets.token_bytes(_NONCE) + _HELLO.pack(self.rank, self.ranks)
            connection.sendall(said + self._proof(b"rank", theirs + said))
            proof = _read(connection, _PROOF)
        except (OSError, EOFError):
            proof = b""
        if not proof or not hmac.compare_digest(proof, self._proof(b"root", said + theirs)):
            raise RendezvousError(
                f"{host}:{port} is not rank 0 of this group, or has another secret; set TPK_GROUP_TOKEN to the same "
                "text for all ranks"
            )
        return connection

    def _proof(self, who: bytes, what: bytes) -> bytes:
        return hmac.digest(self._token, who + what, "sha256")

    # --- bytes ---------------------------------------------------------------------------------------------

    def _send(self, rank: int, content: bytes) -> None:
        try:
            self._peers[rank].settimeout(self.timeout)
            self._peers[rank].sendall(_LENGTH.pack(len(content)) + content)
        except (OSError, KeyError) as error:
            raise self._gone(rank) from error

    def _receive(self, rank: int) -> bytes:
        try:
            (length,) = _LENGTH.unpack(self._read(rank, _LENGTH.size))
            if length > _LONGEST:
                raise EOFError
            return self._read(rank, length)
        except (OSError, EOFError, KeyError) as error:
            raise self._gone(rank) from error

    def _read(self, rank: int, size: int) -> bytes:
        """Read from another rank, and look from time to time whether the group is lost."""
        connection, found = self._peers[rank], bytearray()
        while len(found) < size:
            if select.select([connection], [], [], _POLL_SECONDS)[0]:
                if not (more := connection.recv(size - len(found))):
                    raise EOFError
                found += more
            else:
                self.check()
                if time.monotonic() > self._deadline:
                    raise self._late(rank)
        return bytes(found)

    def _gone(self, rank: int) -> RankLost:
        with contextlib.suppress(KeyError):
            self._peers.pop(rank).close()
        return RankLost(
            rank,
            f"rank {rank} is lost: it closed its connection to rank {self.rank}; see its own output for the reason, "
            "and start the group again",
        )


def _read(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        if not (more := connection.recv(size - len(found))):
            raise EOFError
        found += more
    return bytes(found)

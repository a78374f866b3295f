"""The rendezvous that the environment describes, as launchers of several processes set it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from triton_porting_kit.distributed.rendezvous import Alone, FolderRendezvous, Rendezvous
from triton_porting_kit.distributed.tcp import TcpRendezvous
from triton_porting_kit.errors import RendezvousError

TOKEN = "TPK_GROUP_TOKEN"
"""The environment variable with the secret that ranks show each other over TCP."""
PLACE = "TPK_RENDEZVOUS"
"""The environment variable with the place where ranks meet: ``file:/folder`` or ``tcp://host:port``."""


def from_environment(environment: Mapping[str, str] | None = None, *, timeout: float = 300.0) -> Rendezvous:
    """The rendezvous that the environment describes.

    1. an initialised default process group of ``torch.distributed``;
    2. ``TPK_RENDEZVOUS``: ``file:/folder`` or ``tcp://host:port``, with ``RANK`` and ``WORLD_SIZE``;
    3. ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT``, as ``torchrun`` sets them: torch's store where
       torch is installed, else TCP;
    4. without ``RANK`` and ``WORLD_SIZE``, a group of this process alone.

    `timeout`: seconds that other ranks may be late. Raises `RendezvousError`.
    """
    given = os.environ if environment is None else environment
    if environment is None and (joined := _process_group()):
        return joined
    place = given.get(PLACE)
    if "RANK" not in given and "WORLD_SIZE" not in given:
        if place:
            raise RendezvousError(f"{PLACE} is set to {place!r}, but RANK and WORLD_SIZE are not")
        return Alone()
    rank, ranks = _number(given, "RANK"), _number(given, "WORLD_SIZE")
    if place:
        url = urlsplit(place)
        if url.scheme == "file":
            return FolderRendezvous(url.path, rank, ranks, timeout)
        if url.scheme == "tcp" and url.hostname and url.port:
            return _over_tcp(given, url.hostname, url.port, rank, ranks, timeout)
        raise RendezvousError(f"{PLACE} is {place!r}; set it to file:/folder or tcp://host:port")
    if environment is None and find_spec("torch"):
        from triton_porting_kit.distributed import torch_rendezvous

        return torch_rendezvous.from_environment(timeout)
    host, port = given.get("MASTER_ADDR", "127.0.0.1"), _number(given, "MASTER_PORT")
    return _over_tcp(given, host, port, rank, ranks, timeout)


def _process_group() -> Rendezvous | None:
    """The default process group of torch, if the program has one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    from triton_porting_kit.distributed import torch_rendezvous

    return torch_rendezvous.ProcessGroup()


def _over_tcp(
    given: Mapping[str, str], host: str, port: int, rank: int, ranks: int, timeout: float
) -> Rendezvous:
    if not (token := given.get(TOKEN)):
        raise RendezvousError(
            f"ranks that meet at {host}:{port} need a common secret; set {TOKEN} to the same random text for each, "
            "such as the output of `openssl rand -hex 16`"
        )
    return TcpRendezvous(host, port, rank, ranks, token.encode(), timeout)


def _number(given: Mapping[str, str], name: str) -> int:
    text = given.get(name, "")
    if not text.isdecimal():
        raise RendezvousError(f"{name} is {text!r}; a group of several ranks needs a number there")
    return int(text)

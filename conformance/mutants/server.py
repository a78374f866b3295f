"""The processes that run mutants: ``python -m triton_porting_kit.conformance.mutants.server SOCKET PACKAGE``.

The first process, the nursery, imports everything that is not mutated: Triton, MLIR, LLVM, NumPy, and the parts of the
kit that do not import the mutated package (``compiler``, ``driver``, ...). For each message it forks a server and
passes it one end of a channel. The server imports the rest of the kit with the mutant, opens the backend, and forks a
process for each unit that it is asked to run.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed
from triton_porting_kit.conformance.execution.importing import IN_TREE

BACKEND = "cpu"
PACKAGE = "triton_porting_kit"
NEVER_MUTATED = (
    "toolchain.compat", "toolchain.mlir", "toolchain.llvm", "toolchain.cache_manager", "toolchain.diagnostics",
    "binaries.elf", "binaries.line_table",
)  # fmt: skip
EVERYTHING = "everything"
FIRST = {
    "compiler": ("driver", "driver.adapter", "driver.host", "launcher"),
    "backends": ("driver", "driver.adapter", "driver.host", "launcher", "compiler"),
    "driver": ("compiler", "compiler.cpu"),
    "launcher": ("compiler", "compiler.cpu"),
    "abi": (),
    EVERYTHING: (),
}
"""By mutated package: the packages to import in the nursery, because they do not import the mutated one."""
KNOWS_THE_SUITE = ("compiler", "backends")
"""Packages that the suite does not import, so that the nursery can import the suite before them."""
COUNTS = "GCOV_PREFIX"
"""The environment variable with the folder for line counts, also read by processes that a check starts."""
WARM = ("language/arithmetic/add-fp32-tile_1x64", "runtime/copies/htod-65-at-7")
"""Checks that a server runs itself, so that its children find the compiler's modules loaded."""


def main(descriptor: int, package: str) -> None:
    """Serve until the channel is closed."""
    assert os.environ.get(IN_TREE), "Triton, and with it the kit, is imported with this package"
    for name in (*NEVER_MUTATED, *FIRST[package]):
        importlib.import_module(f"{PACKAGE}.{name}")
    runner = None
    if package in KNOWS_THE_SUITE:
        runner = _runner()
    own = {"backends": "backends.cpu", EVERYTHING: "driver"}.get(package, package)
    there = [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.{own}.")]
    assert not there, f"{there} cannot be mutated any more"
    del os.environ[IN_TREE]
    gc.collect()
    gc.freeze()  # so that garbage collection in children does not copy shared pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended servers do not become zombies
    end = socket.socket(fileno=descriptor)
    end.sendall(b"R")
    while True:
        data, ancillary, _, _ = end.recvmsg(1 << 16, socket.CMSG_SPACE(4))
        if not data:
            return
        given = array.array("i")
        given.frombytes(ancillary[0][2][:4])
        parent = os.getpid()
        server = os.fork()
        if server == 0:
            end.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _be_server(given[0], Path(os.fsdecode(data)), runner, parent)
        os.close(given[0])
        end.sendall(server.to_bytes(4, "little"))


def _runner() -> Any:
    from triton_porting_kit.conformance.mutants.running import Runner

    made = Runner()
    made.load()
    return made


def _be_server(descriptor: int, order: Path, runner: Any, parent: int) -> NoReturn:
    from triton_porting_kit.conformance.mutants.child import die_with

    channel = Channel(socket.socket(fileno=descriptor))
    try:
        die_with(parent)
        os.setsid()
        with contextlib.suppress(ChannelClosed):
            _Server(channel, json.loads(order.read_bytes()), runner).serve()
    finally:
        os._exit(0)


class _Server:
    def __init__(self, channel: Channel, order: dict[str, Any], runner: Any) -> None:
        from triton_porting_kit.conformance.mutants.reach import Tracer

        self._channel, self._order, self._runner = channel, order, runner
        self._tracer = Tracer(order["trace"]) if order["trace"] else None

    def serve(self) -> None:
        from triton_porting_kit.conformance.mutants.child import told

        try:
            lines = self._open()
        except BaseException as error:
            self._channel.send({"failed": told(error)})
            return
        self._channel.send({"ready": lines})
        while True:
            order = self._channel.receive()
            if "warm" in order:
                self._channel.send(self._warm())
            else:
                self._channel.send(self._run(order))

    def _open(self) -> dict[str, list[int]]:
        """Import the kit and open the backend. Returns the lines that ran, if requested."""
        from triton_porting_kit.conformance.mutants import loading

        scratch = Path(self._order["scratch"])
        output = os.open(scratch / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        replaced = {name: Path(path) for name, path in self._order["replaced"].items()}
        cache = scratch / "cache"
        cache.mkdir(mode=0o700)
        work = scratch / "work"
        work.mkdir(mode=0o700)
        os.environ |= {"TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_BACKEND": BACKEND}
        if replaced:
            os.environ |= loading.prepare(replaced, scratch)
            loading.install(replaced)
        return self._traced(lambda: self._open_session(str(work)))

    def _open_session(self, work: str) -> None:
        from triton import backends

        backends.backends.update(backends._discover_backends())
        from triton_porting_kit.conformance.profile import Profile
        from triton_porting_kit.conformance.sessions import open_session

        if self._runner is None:
            self._runner = _runner()
        self._session = open_session(BACKEND, Profile(), scratch=work)

    def _traced(self, run: Any) -> dict[str, list[int]]:
        if self._tracer is None:
            run()
            return {}
        with self._tracer:
            run()
        return self._tracer.lines()

    def _warm(self) -> dict[str, Any]:
        """Run the checks of `WARM` in this process, on one thread. Returns the first failure, or the last outcome."""
        from dataclasses import replace

        from triton_porting_kit.conformance.mutants.outcome import PASS, Outcome
        from triton_porting_kit.conformance.mutants.unit import CHECKS, Unit

        found = [Outcome(PASS)]

        def run() -> None:
            for name in WARM:
                if not found[0].caught:
                    found[0] = self._runner.run(Unit(CHECKS, name, (name,)), self._session)

        os.environ["TPK_NUM_THREADS"], before = "1", os.environ["TPK_NUM_THREADS"]
        lines = self._traced(run)
        os.environ["TPK_NUM_THREADS"] = before
        gc.collect()
        gc.freeze()
        return replace(found[0], lines=lines).to_json()

    def _write_counts(self) -> None:
        """Write the line counts of instrumented modules: `os._exit` would lose them."""
        if os.environ.get(COUNTS):
            for module in self._order["replaced"]:
                ctypes.CDLL(sys.modules[module].__file__).tpk_write_counts()

    def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        from dataclasses import replace

        from triton_porting_kit.conformance.mutants.child import in_child
        from triton_porting_kit.conformance.mutants.unit import Unit

        unit = Unit.from_json(order["run"])

        def run() -> Any:
            if order["counts"]:
                os.environ[COUNTS] = order["counts"]
            outcomes: list[Any] = []
            lines = self._traced(
                lambda: outcomes.append(self._runner.run(unit, self._session, all_checks=order["all_checks"]))
            )
            self._write_counts()
            return replace(outcomes[0], lines=lines)

        found: dict[str, Any] = in_child(run, order["seconds"], order["memory"]).to_json()
        return found


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

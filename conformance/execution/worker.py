"""The process that runs checks: ``python -m triton_porting_kit.conformance.execution.worker SOCKET STACKS``.

`SOCKET` is the descriptor of its end of a `Channel`. `STACKS` is a file for the stacks that `faulthandler` writes when
the process dies or receives SIGUSR1. Standard output belongs to the backend; the worker does not use it.

It receives ``{"settings": …, "reset": bool, "scratch": folder}`` and answers ``{"ready": description}`` or
``{"failed": evidence}``. Then, for each ``{"run": [names]}``, it sends ``{"record": …}`` for each check that ends, and
finally ``{"done": {"healthy": bool, "unfinished": [names]}}``; unfinished checks lost their device to another check of
their batch. It answers ``{"measure": seconds}`` with ``{"measured": figures}``.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import platform
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed

if TYPE_CHECKING:
    from triton_porting_kit.conformance.check import Check
    from triton_porting_kit.conformance.context import Session
    from triton_porting_kit.conformance.profile import Profile
    from triton_porting_kit.conformance.record import Record

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve a supervisor until it closes the channel."""
    descriptor, stacks = int(sys.argv[1]), open(sys.argv[2], "w")  # noqa: SIM115 (open for as long as this lives)
    _die_with_the_parent()
    _leave_stacks(stacks)
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        _Worker(channel).serve()
    except ChannelClosed:
        pass
    except (SystemExit, KeyboardInterrupt) as error:
        from triton_porting_kit.conformance.stages import of_exception

        code = error.code if isinstance(error, SystemExit) else 130
        channel.send({"exits": {"stage": of_exception(error), "message": f"{type(error).__name__}: {code}"}})
        _end(code if isinstance(code, int) else int(code is not None))
    except Exception as error:
        from triton_porting_kit.conformance.trial import error_evidence

        channel.send({"exits": {"harness": error_evidence(error) | {"kind": "harness", "stage": "harness"}}})
        _end(1)
    _end(0)


def _end(code: int) -> None:
    """Exit without the clean-up code of a backend that may be broken."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _die_with_the_parent() -> None:
    """End with the supervisor. If it is killed, nothing else would end a hanging check."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _leave_stacks(file: IO[str]) -> None:
    faulthandler.enable(file, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file, all_threads=True)
    if platform.libc_ver()[0] == "glibc":
        # Also dump the stacks if a library calls exit(): the C library raises the signal in an exit handler.
        libc = ctypes.CDLL(None)
        libc.__cxa_atexit(ctypes.cast(libc["raise"], ctypes.c_void_p), ctypes.c_void_p(signal.SIGUSR1), None)


class _Worker:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._checks: dict[str, Check] = {}
        self._session: Session
        self._profile: Profile

    def serve(self) -> None:
        order = self._channel.receive()
        try:
            self._channel.send({"ready": self._open(order)})
        except ChannelClosed:
            raise
        except Exception as error:
            from triton_porting_kit.conformance.stages import IMPORTED
            from triton_porting_kit.conformance.trial import error_evidence

            self._channel.send({"failed": error_evidence(error) | {"kind": "error", "stage": IMPORTED}})
            return
        while True:
            order = self._channel.receive()
            if "measure" in order:
                self._measure(order["measure"])
            else:
                self._run(order["run"])

    # --- opening -------------------------------------------------------------------------------------

    def _open(self, order: dict[str, Any]) -> dict[str, Any]:
        from pathlib import Path

        from triton_porting_kit.conformance import profile
        from triton_porting_kit.conformance.execution.description import describe
        from triton_porting_kit.conformance.execution.settings import Settings
        from triton_porting_kit.conformance.sessions import open_session

        self._settings = settings = Settings.from_json(order["settings"])
        found = Path(settings.profile) if settings.profile else profile.find(settings.backend)
        self._profile = profile.load(found) if found else profile.Profile()
        self._session = open_session(
            settings.backend,
            self._profile,
            seed=settings.seed,
            target=settings.target,
            scratch=order["scratch"],
        )
        if found:
            self._profile = profile.load(found, self._session.target.arch)
        if order["reset"]:
            self._session.memory.reset()
        description = describe(self._session, self._profile)
        if settings.torch and not settings.target:
            from triton_porting_kit.conformance.torch import support

            description[support.LEVEL] = support.describe(self._session.driver)
        return description

    # --- running -------------------------------------------------------------------------------------

    def _run(self, names: Sequence[str]) -> None:
        from triton_porting_kit.conformance.batches import try_checks

        checks = [self._check(name) for name in names]
        listed = ((check.name, self._profile.listing(check)) for check in checks)
        listings = {name: listing for name, listing in listed if listing}
        finished: set[str] = set()
        healthy, lost = True, False
        for record in try_checks(checks, self._session, listings):
            if any(item["kind"] == "error" for item in record.evidence):
                lost, healthy = self._tend(record)
                if lost and len(checks) > 1:
                    break  # the batch's kernel lost the device: the result of this check is unknown
            self._channel.send({"record": record.to_json()})
            finished.add(record.name)
            if not healthy:
                break
        unfinished = [name for name in names if name not in finished]
        self._channel.send({"done": {"healthy": healthy, "unfinished": unfinished}})

    def _measure(self, seconds: float) -> None:
        from triton_porting_kit.conformance.performance import measure

        self._channel.send({"measured": measure(self._session, seconds)})

    def _check(self, name: str) -> Check:
        if name not in self._checks:
            from triton_porting_kit.conformance.execution.plan import load_checks

            level = name.partition("/")[0]
            self._checks |= {check.name: check for check in load_checks(self._settings, [level])}
        return self._checks[name]

    def _tend(self, record: Record) -> tuple[bool, bool]:
        """After an error, reset the device if it was lost. Returns whether it was lost, and whether it works now."""
        lost = any(item.get("type") == "DeviceLost" for item in record.evidence) or not self._answers()
        if lost:
            try:
                self._session.memory.reset()
            except Exception:
                return lost, False
        return lost, not lost or self._answers()

    def _answers(self) -> bool:
        """Whether memory can still be allocated, written and read without an error; the contents are not compared."""
        import numpy as np

        memory = self._session.memory
        try:
            block = memory.allocate(64)
            block.write(np.zeros(64, np.uint8))
            memory.synchronize()
            block.read()
        except Exception:
            return False
        return True


if __name__ == "__main__":
    threading.current_thread().name = "checks"
    main()

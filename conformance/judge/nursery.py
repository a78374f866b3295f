"""The process from which candidates' processes are forked. It imports Triton and torch once, and knows no task.

``python -m triton_porting_kit.conformance.judge.nursery FD MODULES``. For each message ``fork`` with four descriptors
(line, inputs, outputs, printed output) it forks a process that serves them, and answers with its process ID. It answers
``wait ID`` and ``kill ID`` with the exit status of the process.
"""

from __future__ import annotations

import array
import contextlib
import importlib
import os
import signal
import socket
import sys
import time
import traceback

from triton_porting_kit.conformance.judge.exchange import Gone, Line, Memory

_GRACE = 2.0
"""Seconds that a process may take to exit after it has closed its line."""


def main() -> None:
    """Serve a judge until it closes the socket."""
    end = socket.socket(fileno=int(sys.argv[1]))
    import triton  # noqa: F401

    for name in sys.argv[2].split(","):
        if name:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    from triton_porting_kit.conformance.judge import sandbox, worker
    from triton_porting_kit.toolchain import compat

    compat.make_triton_key()
    sandbox.protect_judge()
    end.sendall(b"ready\n")
    while True:
        data, ancillary, _, _ = end.recvmsg(64, socket.CMSG_SPACE(4 * array.array("i").itemsize))
        if not data:
            return
        word, _, number = data.decode().strip().partition(" ")
        if word == "fork":
            descriptors = array.array("i")
            for _, _, content in ancillary:
                descriptors.frombytes(content)
            child = os.fork()
            if child == 0:
                _child(worker, descriptors.tolist())
            for descriptor in descriptors:
                os.close(descriptor)
            end.sendall(f"{child}\n".encode())
        else:
            end.sendall(f"{_reap(int(number), _GRACE if word == 'wait' else 0.0)}\n".encode())


def _reap(child: int, grace: float) -> int:
    """Kill a process and its process group. Returns its exit status as `os.waitstatus_to_exitcode` does."""
    status, deadline = None, time.monotonic() + grace
    with contextlib.suppress(ChildProcessError):
        while status is None:
            found, code = os.waitpid(child, os.WNOHANG)
            status = code if found else None
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        with contextlib.suppress(ChildProcessError):
            status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status) if status is not None else 0


def _child(worker: object, descriptors: list[int]) -> None:
    """Serve one candidate; never returns."""
    code = 1
    try:
        os.setsid()
        line, inputs, outputs, said = descriptors
        os.dup2(said, 1)
        os.dup2(said, 2)
        keep = sorted({line, inputs, outputs})
        os.closerange(3, keep[0])
        for low, high in zip(keep, [*keep[1:], 1 << 16], strict=True):
            os.closerange(low + 1, high)
        worker.serve(Line(socket.socket(fileno=line)), Memory(inputs), Memory(outputs))  # type: ignore[attr-defined]
        code = 0
    except Gone:
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os.write(2, traceback.format_exc().encode())
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()

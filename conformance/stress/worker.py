"""The process that programs run in: ``python -m triton_porting_kit.conformance.stress.worker BACKEND [PROFILE]``.

It reads pickled `Launch` objects from its standard input and answers each with a line of JSON.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
from pathlib import Path

from triton_porting_kit.conformance.arrays import OutOfBounds, WrongResult
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.profile import Profile, load
from triton_porting_kit.conformance.sessions import open_session
from triton_porting_kit.conformance.stages import of_exception
from triton_porting_kit.conformance.stress import outcome
from triton_porting_kit.conformance.stress.launching import Launch, mistake
from triton_porting_kit.conformance.stress.outcome import Outcome


def outcome_of(launch: Launch, memory: MemoryAccess) -> Outcome:
    """Run a program in this process."""
    try:
        wrong = mistake(launch, memory)
    except OutOfBounds as error:
        return Outcome(outcome.OUT_OF_BOUNDS, str(error))
    except WrongResult as error:
        return Outcome(outcome.WRONG, str(error))
    except Exception as error:
        return Outcome(outcome.ERROR, str(error)[-2000:], f"{of_exception(error)}, {type(error).__name__}")
    return Outcome(outcome.WRONG, wrong) if wrong else Outcome(outcome.PASS)


def main(backend: str, profile: str = "") -> None:
    """Answer until the input ends. What kernels print goes to standard error."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    session = open_session(backend, load(Path(profile)) if profile else Profile())
    answers.write(json.dumps({"memory": session.memory.describe()["memory"]}) + "\n")
    while True:
        try:
            launch = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        assert isinstance(launch, Launch)
        found = outcome_of(launch, session.memory)
        answers.write(
            json.dumps({"kind": found.kind, "message": found.message, "detail": found.detail}) + "\n"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])

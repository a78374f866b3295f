"""Files that were damaged or forged: mutations by structure and by bytes, within bounds of time and memory."""

from __future__ import annotations

import copy
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BUDGETS = [pytest.param(1, id="quick"), pytest.param(50, id="long", marks=pytest.mark.slow)]
"""How many times the examples of a reader are tried."""
_SECONDS = 60
"""What one example may take; machines are busy."""
_BYTES = 3 << 30

VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 3, 10**9, (1 << 63) - 1, 1 << 63, 1 << 80, -1.5, 1e308),
    *(
        "",
        "a\nb",
        "\x1b]0;x\x07\x1b[2J",
        "../../x",
        "/",
        "x" * 3000,
        '"); evil(',
        "</script>",
        "\ud800",
        "\u202e",
        "-",
    ),
    *("pass", "3.9.0", "99999.1", "*fp32", "i64", "0x10", "sha256:0"),
    *([], {}, [[]], [None], ["a"], [1, 2], {"": 0}, {"kind": "error"}, [{}], [[[[[[[[[[{}]]]]]]]]]]),
]
"""What stands in the place of something else."""
PIECES = [
    *(
        b"\x00",
        b"\xff",
        b"\xff" * 8,
        b"\x00" * 8,
        b"\x7f" + b"\xff" * 7,
        b"\x1b[31m",
        b"\n",
        b'"',
        b"'",
        b"\\",
        b"<",
    ),
    *(
        b"[" * 300,
        b"{" * 300,
        b"[[",
        b"]",
        b"}",
        b"= 1e999",
        b"- &a *a\n",
        b"!!python/object:os.system x\n",
        b"\x93NUMPY",
    ),
    *(
        b"\xed\xa0\x80",
        b"9" * 5000,
        b"\x01\x00\x00\x00\x00\x00\x00\x80",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\x7f\xff\xff\xff",
    ),
]


def changed(data: st.DataObject, document: Any) -> Any:
    """A document of which one to three places hold something else, or are gone, or are there twice."""
    made = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(_places(made))
        if not places:
            break
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        match data.draw(st.sampled_from(["replace", "replace", "remove", "repeat", "rename"])):
            case "remove":
                del holder[key]
            case "repeat" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "rename" if isinstance(holder, dict):
                holder[data.draw(st.sampled_from(["", "x", "kind", "shard"]))] = holder.pop(key)
            case _:
                holder[key] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
    return made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)


def damaged(data: st.DataObject, content: bytes) -> bytes:
    """Bytes of which some are gone, flipped, overwritten, put in or there twice."""
    made = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(made)))
        piece = data.draw(st.sampled_from(PIECES))
        match data.draw(st.sampled_from(["cut", "flip", "insert", "overwrite", "remove", "repeat"])):
            case "cut":
                del made[at:]
            case "flip" if at < len(made):
                made[at] ^= 1 << data.draw(st.integers(0, 7))
            case "overwrite":
                made[at : at + len(piece)] = piece
            case "remove":
                del made[at : at + data.draw(st.integers(1, 64))]
            case "repeat":
                made[at:at] = made[at : at + data.draw(st.integers(1, 200))]
            case _:
                made[at:at] = piece
    return bytes(made)


def fuzz(examples: int, body: Callable[[st.DataObject], None]) -> None:
    """Run a body on examples; the same ones each time for a few, others for many."""

    @settings(
        max_examples=examples,
        derandomize=examples < 1000,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        signal.alarm(_SECONDS)
        body(data)

    with _bounded():
        run()


@contextmanager
def _bounded() -> Iterator[None]:
    """What takes too long, or too much memory, fails."""

    def late(*_: object) -> None:
        raise AssertionError(f"it takes more than {_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, hard))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

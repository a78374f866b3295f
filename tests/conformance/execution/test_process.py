"""Messages, and what is read off the stacks that a process leaves."""

from __future__ import annotations

import socket

import pytest

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed
from triton_porting_kit.conformance.execution.process import own_stack
from triton_porting_kit.conformance.stages import of_dump

POOL = 'Thread 0x00007f02 (most recent call first):\n  File "/x/threading.py", line 1 in wait\n'
CHECKS = (
    'Thread 0x00007f01 (most recent call first):\n  File "/x/triton/runtime/jit.py", line 7 in run\n'
    '  File "/x/conformance/execution/worker.py", line 9 in serve\n'
)


def channels() -> tuple[Channel, Channel]:
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


def test_messages_arrive_in_order_and_whole() -> None:
    ours, theirs = channels()
    assert theirs.poll() is None
    for number in range(100):
        ours.send({"number": number, "text": "é\n" * 50})
    assert [theirs.receive()["number"] for _ in range(100)] == list(range(100))


def test_what_was_sent_before_the_end_arrives() -> None:
    ours, theirs = channels()
    ours.send({"last": True})
    ours.close()
    assert theirs.receive() == {"last": True}
    with pytest.raises(ChannelClosed):
        theirs.receive()
    with pytest.raises(ChannelClosed):
        theirs.send({})


@pytest.mark.parametrize(
    ("stacks", "stage"),
    [
        ("", "check"),
        (f"Fatal Python error: Aborted\n\n{POOL}{CHECKS}", "launched"),
        (POOL + "Current" + CHECKS.replace("Thread", " thread", 1), "launched"),
        # Killed in a thread that runs no Python: the thread of checks was in a launch.
        (
            f"Current thread 0x00007f03 (most recent call first):\n  <no Python frame>\n\n{POOL}{CHECKS}",
            "launched",
        ),
    ],
)
def test_the_stage_of_the_thread_that_runs_checks(stacks: str, stage: str) -> None:
    assert of_dump(own_stack(stacks)) == stage

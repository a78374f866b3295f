"""Grids on the threads that torch computes with."""

from __future__ import annotations

import pytest
from host_scripts import FORK, LAUNCH, python

pytest.importorskip("torch")

_TORCH = (
    """
import os
import torch
torch.set_num_threads(2)
values = torch.ones(1 << 20)
def workers():
    tasks = os.listdir("/proc/self/task")
    return sum(open(f"/proc/self/task/{task}/comm").read() == "tpk-pool\\n" for task in tasks)
"""
    + LAUNCH
)


def _passes(code: str) -> None:
    result = python(_TORCH + code, TPK_NUM_THREADS="2", OMP_NUM_THREADS="")
    assert result.returncode == 0, result.stderr


def test_a_launch_starts_no_threads_beside_those_of_torch() -> None:
    _passes("""
for _ in range(50):
    values.add_(1); run()
check(50)
assert workers() == 0 and values.eq(51).all()
""")


def test_both_threads_run_programs() -> None:
    _passes("""
meet = device.get_function(device.load_module(kernel("meet"), "meet"), "meet")
values.add_(1)
device.memset(out, 0, 8)
device.launch(meet, (2,), 0, struct.pack("QQ", out, 2))  # each of its programs waits for the other
assert workers() == 0
""")


def test_each_of_them_keeps_its_programs() -> None:
    _passes("""
where = device.get_function(device.load_module(kernel("meet.where"), "meet.where"), "meet.where")
seen = set()
for _ in range(30):
    values.add_(1)
    device.memset(out, 0, 24)
    device.launch(where, (2,), 0, struct.pack("QQ", out, 2))
    back = bytearray(24); device.memcpy_dtoh(back, out)
    seen.add(struct.unpack("3q", back)[1:])
assert workers() == 0 and len(seen) == 1, seen
""")


def test_torch_may_be_imported_after_the_first_launch() -> None:
    result = python(
        LAUNCH
        + "run()\n"
        + _TORCH.replace(LAUNCH, "")
        + """
assert workers() == 1
values.add_(1); run(); check(2)
""",
        TPK_NUM_THREADS="2",
    )
    assert result.returncode == 0, result.stderr


def test_another_number_of_threads_than_torch_has() -> None:
    _passes("""
torch.set_num_threads(1)
values.add_(1); run(); check(1)
assert workers() == 1
torch.set_num_threads(2)
values.add_(1); run(); check(2)
""")


def test_streams_run_on_the_pool() -> None:
    _passes("""
stream = device.create_stream()
for _ in range(20):
    values.add_(1); run(stream)
device.synchronize(stream)
check(20)
assert workers() == 1
""")


def test_forked_children_have_a_pool_of_their_own() -> None:
    _passes(
        FORK
        + """
values.add_(1); run()
def child():
    run(); check(2)
    assert workers() == 1
    in_child(lambda: (run(), check(3)))
for _ in range(3):
    in_child(child)
values.add_(1); run(); check(2)
assert workers() == 0
"""
    )


def test_threads_launch_at_once() -> None:
    _passes("""
import threading
added = device.memalloc(8 * 4000); device.memset(added, 0, 8 * 4000)
def work(k):
    mine, place = torch.ones(1 << 20), added + 8000 * k
    for _ in range(50):
        mine.add_(1)
        device.launch(function, (1000,), 0, struct.pack("Q", place))
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
back = bytearray(8 * 4000); device.memcpy_dtoh(back, added)
assert struct.unpack("4000q", back) == tuple(50 * i for i in range(1, 1001)) * 4
""")

"""Launches and waits that the user ends, by Ctrl-C or by the watchdog."""

from __future__ import annotations

import re

import pytest
from host_scripts import LAUNCH, python

# `interrupt()` sends Ctrl-C once some programs have run, and, if `waits` is given, once the main thread waits. It is set
# right before, and by then only the wait itself takes the signals that nothing comes of: Python looks for signals a few
# times on the way there. `ends(what)` says whether KeyboardInterrupt comes out of it, and nothing runs any more.
INTERRUPT = (
    LAUNCH
    + """
import os, signal, threading, time
taken = []
signal.signal(signal.SIGUSR1, lambda number, frame: taken.append(number))
spin = device.get_function(device.load_module(kernel("spin"), "spin"), "spin")
counter, block = device.memalloc(8), device.memalloc(8)
def ran():
    back = bytearray(8); device.memcpy_dtoh(back, counter)
    return int.from_bytes(back, "little")
def begin(stream=0, programs=2**31 - 1, rounds=20_000):
    device.launch(spin, (programs,), stream, struct.pack("QQ", counter, rounds))
def interrupt(waits=None):
    seen = ran()
    def send():
        if waits is not None:
            waits.wait()
            for count in range(1, 17):
                os.kill(os.getpid(), signal.SIGUSR1)
                while len(taken) < count: time.sleep(0.001)
            taken.clear()
        while ran() <= seen:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
def ends(what, *arguments):
    try:
        what(*arguments)
    except KeyboardInterrupt:
        before = ran(); time.sleep(0.1)
        return ran() == before
    return False
device.memset(counter, 0, 8)
stream, other, event = device.create_stream(), device.create_stream(), device.create_event()
def queued(waits, wait, *arguments):
    for _ in range(3):
        begin(stream)
    device.record_event(event, stream)
    device.memset(out, 1, 8, stream)
    waits.set()
    wait(*arguments)
"""
)


@pytest.mark.parametrize("width", ["1", "3"])
def test_a_launch_ends(width: str) -> None:
    script = """
for rounds in (1, 20_000, 20_000_000):
    interrupt(); assert ends(begin, 0, 2**31 - 1, rounds), rounds
run(); run(stream); device.synchronize(stream); check(2)
"""
    result = python(INTERRUPT + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


def test_a_launch_on_the_threads_of_torch_ends() -> None:
    pytest.importorskip("torch")
    script = "import torch; torch.set_num_threads(2); torch.ones(1 << 20).exp_()\n" + INTERRUPT
    result = python(script + "interrupt(); assert ends(begin)\nrun(); check(1)", TPK_NUM_THREADS="2")
    assert result.returncode == 0, result.stderr


def test_waits_end_with_the_work_that_is_waited_for() -> None:
    script = """
for wait, *arguments in (
    (device.synchronize, stream), (device.synchronize,), (device.synchronize_event, event),
    (device.wait_event, 0, event), (device.memfree, block), (device.destroy_stream, stream), (device.reset,),
):
    waits = threading.Event()
    interrupt(waits); assert ends(queued, waits, wait, *arguments), wait
    device.synchronize(stream)  # no failure is left, and nothing runs
assert device.memory_usage()[2] == 3
run(); run(stream); device.synchronize(stream); check(2)
"""
    # What was queued behind the launches did not run either.
    result = python(INTERRUPT + script)
    assert result.returncode == 0, result.stderr


def test_the_work_of_other_threads_goes_on() -> None:
    script = """
def launches():
    for _ in range(100):
        run(); run(other); device.synchronize(other)
    for _ in range(100):
        run(other)
thread = threading.Thread(target=launches); thread.start()
waits = threading.Event()
interrupt(waits); assert ends(lambda: [begin(stream) for _ in range(3)] and waits.set() or device.synchronize())
thread.join(); device.synchronize()
check(300)
"""
    result = python(INTERRUPT + script)
    assert result.returncode == 0, result.stderr


def test_a_handler_may_launch_and_the_launch_goes_on() -> None:
    """The handler's kernel uses the scratch of the thread that it interrupts, which is cleared again."""
    script = """
drag, tally = (
    device.get_function(device.load_module(kernel(name, cleared=8), name), name) for name in ("drag", "tally")
)
calls, slots, counts = [], device.memalloc(8 * 4000), device.memalloc(8 * 10)
def numbers(address, count):
    back = bytearray(8 * count); device.memcpy_dtoh(back, address)
    return struct.unpack(f"{count}q", back)
def handler(number, frame):
    run()
    device.launch(tally, (10,), 0, struct.pack("Q", counts))
    calls.append(numbers(counts, 10))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
device.launch(drag, (4000,), 0, struct.pack("QQ", slots, 500_000))
assert calls == [tuple(range(1, 11))], calls
found = numbers(slots, 4000)
assert found[0] == 1 and all(new in (1, old + 1) for old, new in zip(found, found[1:])), found
check(1)
"""
    result = python(INTERRUPT + script, TPK_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr


def test_exceptions_of_other_handlers_come_through() -> None:
    script = """
class Enough(TypeError): pass
def handler(number, frame): raise Enough("of this")
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    begin()
except Enough as error:
    print(error)
"""
    result = python(INTERRUPT + script)
    assert result.stdout == "of this\n", result.stderr


def test_the_watchdog_stops_a_launch() -> None:
    script = """
from triton_porting_kit.errors import LaunchTimeout
for queue in (0, stream):
    try:
        begin(queue); device.synchronize(queue)
    except LaunchTimeout as error:
        print(error)
run(); run(stream); device.synchronize(stream); check(2)
"""
    # Long, for the thousand short programs at the end, which may have to wait for a busy machine.
    result = python(INTERRUPT + script, TPK_WATCHDOG_MS="1500")
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result.stderr
    for line in lines:
        assert line.startswith("host CPU: launch: kernel 'spin' was stopped after 1500 ms, when ")
        found = re.search(r"when (\d+) of 2147483647 programs had run; TPK_WATCHDOG_MS sets the limit", line)
        assert found is not None, line
        assert 0 < int(found[1]) < 2147483647


@pytest.mark.parametrize("value", ["-1", "1.5", "86400001"])
def test_a_bad_limit_is_refused(value: str) -> None:
    result = python(LAUNCH + "run()", TPK_WATCHDOG_MS=value)
    assert f"LaunchError: host CPU: launch: TPK_WATCHDOG_MS is '{value}'; set it to" in result.stderr


@pytest.mark.parametrize("programs", [1, 50])
def test_an_exception_of_a_handler_comes_before_the_watchdog(programs: int) -> None:
    """The first program takes longer than it may, and the handler of a signal raises meanwhile."""
    script = f"""
class Enough(Exception): pass
def handler(number, frame): raise Enough("of this")
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    begin(0, {programs}, 500_000_000)
except Enough as error:
    print(error)
device.launch(function, (1,), 0, struct.pack("Q", out))  # a single program has no limit
back = bytearray(8); device.memcpy_dtoh(back, out)
assert int.from_bytes(back, "little") == 1
"""
    result = python(INTERRUPT + script, TPK_WATCHDOG_MS="20")
    assert (result.returncode, result.stdout) == (0, "of this\n"), result.stderr

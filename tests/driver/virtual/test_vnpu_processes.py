"""Whose process is whose: no chip outlives its host, and no host is harmed by a fork, a reset or a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chips import Chip, Refused, is_running, resident_bytes

HERE = str(Path(__file__).parent)
HANG_SECONDS = 60
"""What takes longer than this hangs, on a busy machine, too."""


def script(body: str) -> list[str]:
    head = f"import os, signal, sys, time\nsys.path.insert(0, {HERE!r})\nfrom chips import Chip, Refused\n"
    return [sys.executable, "-c", head + textwrap.dedent(body)]


def await_end(process: int) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while is_running(process):
        assert time.monotonic() < deadline, "the chip outlives its host"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "end",
    ["pass", "os._exit(0)", "os.abort()", "os.kill(os.getpid(), signal.SIGKILL)", "chip.close()", "chip.inject('hang:1'); chip.fill(chip.alloc(8), 0, 8)",
     "import threading; threading.Thread(target=chip.synchronize).start()"],
)  # fmt: skip
def test_a_chip_ends_with_its_host(end: str) -> None:
    done = subprocess.run(
        script(f"chip = Chip()\nprint(chip.process(), flush=True)\n{end}"),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    await_end(int(done.stdout))


def test_a_chip_does_not_live_on_in_forked_children() -> None:
    """A child that goes on after its parent was killed keeps no chip."""
    body = """
        chip = Chip()
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        print(chip.process(), flush=True)
        time.sleep(600)
    """
    with subprocess.Popen(script(body), stdout=subprocess.PIPE, text=True, start_new_session=True) as host:
        try:
            assert host.stdout is not None
            process = int(host.stdout.readline())
            host.kill()
            await_end(process)
        finally:
            os.killpg(host.pid, signal.SIGKILL)


def test_a_chip_ends_when_its_host_becomes_another_program() -> None:
    body = """
        chip = Chip()
        print(chip.process(), flush=True)
        os.execvp("sleep", ["sleep", "600"])
    """
    with subprocess.Popen(script(body), stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            await_end(int(host.stdout.readline()))
        finally:
            host.kill()


def in_child(body: Callable[[], None]) -> None:
    """Run in a forked child, which has to succeed."""
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_is_told_and_may_reset(chip: Chip) -> None:
    memory = chip.array(b"parent's")
    process = chip.process()

    def refused_and_reset() -> None:
        for attempt in (lambda: chip.alloc(1), lambda: chip.read(memory, 8), lambda: chip.free(memory)):
            with pytest.raises(Refused, match=r"forked off from.*vnpu_reset") as info:
                attempt()
            assert info.value.status == "DEVICE_LOST"
        chip.reset()
        assert chip.process() != process
        assert chip.read(chip.array(b"child's"), 7) == b"child's"
        chip.reset()
        in_child(refused_and_nothing_else)
        chip.close()

    def refused_and_nothing_else() -> None:
        with pytest.raises(Refused, match="forked off"):
            chip.synchronize()

    in_child(refused_and_reset)
    in_child(chip.close)
    in_child(refused_and_nothing_else)
    assert chip.process() == process
    assert chip.read(memory, 8) == b"parent's"


def test_forks_while_threads_work(chip: Chip) -> None:
    """A child never inherits a lock that nobody gives back."""
    import threading

    memory, stop = chip.alloc(1 << 20), threading.Event()

    def work() -> None:
        while not stop.is_set():
            chip.fill(memory, 1, 1 << 20)
            chip.free(chip.alloc(100))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()

    def child() -> None:
        signal.alarm(60)
        with pytest.raises(Refused, match="forked off"):
            chip.synchronize()
        chip.reset()
        assert chip.read(chip.array(b"mine"), 4) == b"mine"
        chip.close()

    for _ in range(10):
        in_child(child)
    stop.set()
    for thread in threads:
        thread.join()
    chip.synchronize()


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_resets_leave_everything_flat(count: int) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    def threads() -> int:
        """A thread that was joined may still be listed for a moment."""
        counts = []
        for _ in range(20):
            counts.append(len(os.listdir("/proc/self/task")))
            time.sleep(0.01)
        return min(counts)

    with Chip(cores=2) as chip:
        sizes = []
        for turn in range(count):
            process = chip.process()
            address = chip.array(b"before")
            chip.reset()
            assert chip.process() != process
            assert not is_running(process)
            assert chip.counted().allocated_bytes == 0
            with pytest.raises(Refused):
                chip.read(address, 6)
            if turn % (count // 10) == count // 10 - 1:
                sizes.append((resident_bytes(), resident_bytes(chip.process()), files(), threads()))
    first, last = sizes[0], sizes[-1]
    assert abs(last[0] - first[0]) < 4 << 20
    assert abs(last[1] - first[1]) < 4 << 20
    assert last[2:] == first[2:]


def test_resets_end_what_is_running(kernels: bytes) -> None:
    """Nothing else would: there is no watchdog."""
    with Chip(cores=2, watchdog_ms=0) as chip:
        for _ in range(5):
            endless = chip.symbol(chip.load(kernels), "endless")
            queue, event = chip.queue(), chip.event()
            chip.launch(endless, (10, 1, 1))
            chip.launch(endless, (10, 1, 1), queue=queue)
            chip.reset()
            for gone in (
                lambda q=queue: chip.queue_synchronize(q),
                lambda e=event: chip.event_synchronize(e),
            ):
                with pytest.raises(Refused, match="does not exist"):
                    gone()
            with pytest.raises(Refused, match="does not exist or was unloaded"):
                chip.launch(endless, (1, 1, 1))


def test_calls_and_resets_from_several_threads(chip: Chip) -> None:
    import threading

    stop, unexpected = threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            try:
                memory = chip.array(bytes(100_000))
                queue = chip.queue()
                chip.fill(memory, 1, 100_000, queue)
                chip.read(memory, 100_000, queue)
                chip.queue_destroy(queue)
                chip.free(memory)
            except Refused as error:
                if error.status not in ("DEVICE_LOST", "INVALID_POINTER", "INVALID_ARGUMENT"):
                    unexpected.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        chip.reset()
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not unexpected


def test_several_devices_are_separate() -> None:
    with Chip() as first, Chip() as second:
        a, b = first.array(b"first"), second.array(b"other")
        assert a != b
        with pytest.raises(Refused, match="not in a live allocation"):
            second.read(a, 5)
        os.kill(first.process(), signal.SIGKILL)
        assert second.read(b, 5) == b"other"


def test_a_stolen_status_does_no_harm() -> None:
    """A host whose children are reaped by somebody else."""
    body = """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with Chip() as chip:
            chip.reset()
            os.kill(chip.process(), signal.SIGKILL)
            try:
                chip.read(chip.alloc(8), 8)
            except Refused as error:
                print(error.text)
            chip.reset()
            print(chip.read(chip.array(b"fine"), 4))
    """
    done = subprocess.run(script(body), capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
    assert "somebody else has taken its status" in done.stdout
    assert "b'fine'" in done.stdout


def test_hosts_without_standard_files(kernels: bytes) -> None:
    body = """
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        with Chip() as chip:
            chip.reset()
            ok = chip.read(chip.array(b"fine"), 4) == b"fine"
        os._exit(0 if ok else 1)
    """
    assert subprocess.run(script(body), timeout=HANG_SECONDS).returncode == 0


def test_the_chip_inherits_only_what_it_needs(tmp_path: Path) -> None:
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        with Chip() as chip:
            folder = f"/proc/{chip.process()}/fd"
            links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
            assert str(tmp_path / "open") not in links
            masks = Path(f"/proc/{chip.process()}/status").read_text()
            assert "SigBlk:\t0000000000000000" in masks


def test_the_chip_is_of_no_use_by_hand() -> None:
    from triton_porting_kit.driver import virtual

    for arguments in ([], ["--region=3"], ["--help"]):
        done = subprocess.run([virtual.chip(), *arguments], capture_output=True, text=True)
        assert done.returncode == 2
        assert "libvnpu starts it" in done.stderr


def test_addresses_that_are_taken_are_avoided(build: Callable[..., bytes], tmp_path: Path) -> None:
    """The chip's process has something else where its memory was to be."""
    from triton_porting_kit.driver import virtual

    with Chip() as chip:
        usual = chip.alloc(64)
    source = """
        #include <sys/mman.h>
        __attribute__((constructor)) static void take(void) {
          mmap((void *)ADDRESS, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        }
    """
    (tmp_path / "take.so").write_bytes(build(source, "-D_GNU_SOURCE", f"-DADDRESS={usual}"))
    program = tmp_path / "chip"
    program.write_text(f'#!/bin/sh\nLD_PRELOAD={tmp_path}/take.so exec {virtual.chip()} "$@"\n')
    program.chmod(0o755)
    with Chip(chip_path=str(program).encode()) as chip:
        for _ in range(2):
            address = chip.array(b"elsewhere")
            assert address != usual
            assert chip.read(address, 9) == b"elsewhere"
            chip.reset()


def test_a_program_that_is_no_chip_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="did not start: its process ended with status 0") as info:
        Chip(chip_path=b"/bin/true")
    assert info.value.status == "DEVICE_LOST"

"""A kernel that crashes is reported, and the process ends as it would have."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import NamedTuple

import crash_kernels as kernels
import pytest

REMEDY = "  to find the access that leaves its argument, run again with TPK_CHECK=memory"

FINE = "copied[(4,)](array(64), array(64), 64, BLOCK=16)\n"
BAD = "copied[(4,)](array(64), Address(4096), 64, BLOCK=16)\n"

SOURCES = {
    "one thread": "os.environ['TPK_NUM_THREADS'] = '1'\n" + BAD,
    "threads": "os.environ['TPK_NUM_THREADS'] = '3'\n" + BAD,
    "mapped": """
os.environ["TPK_NUM_THREADS"] = "1"
pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc.mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), mmap.PAGESIZE, 0)
copied[(4096,)](Address(start + mmap.PAGESIZE - 4032), array(1 << 16), 1 << 16, BLOCK=16)
""",
    "three axes": "copied_in_one_program[(4, 3, 4)](array(8), array(64), Address(8), BLOCK=16)",
    "factor": "multiplied[(1,)](Address(64), array(4096), 256, SIZE=32)",
    "no address": "copied[(1,)](Address(1 << 62), array(16), 16, BLOCK=16)",
    "bus": """
file = tempfile.TemporaryFile()
file.truncate(4096)
pages = mmap.mmap(file.fileno(), 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
file.truncate(0)
copied[(1,)](Address(start), array(16), 16, BLOCK=16)
""",
    "stream": f"""
stream = driver.active.device.create_stream()
with driver.active.stream(stream):
    {BAD}
driver.active.device.synchronize(stream)
""",
    "handler before": "faulthandler.enable()\n" + FINE + BAD,
    "handler after": "os.environ['TPK_NUM_THREADS'] = '1'\n" + FINE + "faulthandler.enable()\n" + BAD,
    "others": FINE + "ctypes.string_at(8)",
    "others, with a handler": "faulthandler.enable()\n" + FINE + "ctypes.string_at(8)",
    "sent": FINE + "os.kill(os.getpid(), signal.SIGSEGV)",
    "handlers": f"""
got = []
signal.signal(signal.SIGBUS, lambda number, frame: got.append(number))
signal.signal(signal.SIGILL, signal.SIG_IGN)
{FINE}
os.kill(os.getpid(), signal.SIGILL)
os.kill(os.getpid(), signal.SIGBUS)
os.kill(os.getpid(), signal.SIGBUS)
assert got == [signal.SIGBUS] * 2, got
""",
    "stacks": f"""
def work(own):
    if own:
        memory = ctypes.create_string_buffer(1 << 17)
        Stack(ctypes.addressof(memory), 0, 1 << 17).use()
    before = Stack.current()
    {FINE}
    after = Stack.current()
    if own:
        assert (after.start, after.flags, after.size) == (before.start, before.flags, before.size)
        Stack(None, DISABLED, 0).use()
    else:
        assert before.flags == DISABLED
        assert after.flags != DISABLED
        assert after.size >= 1 << 16
    done.append(own)

done = []
for own in (False, True):
    thread = threading.Thread(target=work, args=(own,))
    thread.start()
    thread.join()
assert done == [False, True]
""",
    "no cache": f"""
import shutil
os.environ["TRITON_CACHE_DIR"] += "/gone"
{FINE}
shutil.rmtree(os.environ["TRITON_CACHE_DIR"])
{BAD}
""",
}


class End(NamedTuple):
    """How a process ended, and what it wrote."""

    status: int
    text: str

    @property
    def report(self) -> list[str]:
        """What was told of a crash, line by line; there is one."""
        (report,) = re.findall(r"^triton_porting_kit: (.*\n(?:  .*\n)*)", self.text, re.MULTILINE)
        return str(report).splitlines()


def run(sources: dict[str, str], folder: str) -> dict[str, End]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TPK_", "PYTHON"))
    }
    environment |= {"TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": folder}
    result = subprocess.run(
        [sys.executable, kernels.__file__],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=300,
    )
    return {name: End(*end) for name, end in json.loads(result.stdout).items()}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, End]:
    """How each of `SOURCES` ends: all of them are children of one process, which has imported everything."""
    folder = tmp_path_factory.mktemp("crashes")
    folder.chmod(0o700)
    return run(SOURCES, str(folder))


def place(name: str, text: str) -> str:
    return f"  {kernels.__file__}:{kernels.line(name)}: {text}  # line {name}"


LOAD = place("load", "value = tl.load(x_ptr + at, mask=at < n)")
STORE = place("store", "tl.store(out_ptr + at, value * 2, mask=at < n)")


@pytest.mark.parametrize("name", ["one thread", "threads", "stream", "handler before"])
def test_kernel_program_line_argument_and_remedy(ends: dict[str, End], name: str) -> None:
    assert ends[name].status == -signal.SIGSEGV
    first, *rest = ends[name].report
    found = re.fullmatch(
        r"kernel 'copied' crashed in program \(([0-3]), 0, 0\) of grid \(4, 1, 1\): SIGSEGV at address "
        r"0x10([0-9a-f]0), an offset to NULL",
        first,
    )
    assert found is not None, first
    assert int(found[2], 16) == int(found[1]) * 64
    behind = f"  the address is {int(found[2], 16)} bytes behind the beginning of argument 'out_ptr'"
    assert rest == [STORE, behind, REMEDY]


def test_memory_that_may_not_be_read(ends: dict[str, End]) -> None:
    assert ends["mapped"].status == -signal.SIGSEGV
    first, *rest = ends["mapped"].report
    # 4032 bytes are those of 63 programs.
    assert first.startswith(
        "kernel 'copied' crashed in program (63, 0, 0) of grid (4096, 1, 1): SIGSEGV at address"
    )
    assert first.endswith("which is mapped and may not be accessed so")
    assert rest == [LOAD, "  the address is 4032 bytes behind the beginning of argument 'x_ptr'", REMEDY]


def test_program_of_three_axes(ends: dict[str, End]) -> None:
    first, *rest = ends["three axes"].report
    assert first == (
        "kernel 'copied_in_one_program' crashed in program (3, 1, 2) of grid (4, 3, 4): SIGSEGV at address 0x8, "
        "an offset to NULL"
    )
    assert rest == [
        place("one", "tl.store(bad, tl.load(x_ptr))"),
        "  the address is 0 bytes behind the beginning of argument 'bad'",
        REMEDY,
    ]


def test_factor_that_is_read_where_it_lies(ends: dict[str, End]) -> None:
    assert ends["factor"].report[1] == place("factor", "a = tl.load(a_ptr + row * k + start + step[None, :])")


def test_address_that_no_memory_can_have(ends: dict[str, End]) -> None:
    """By RBP or RSP, x86-64 reaches it in the stack segment, whose exception becomes SIGBUS."""
    first, *rest = ends["no address"].report
    status = ends["no address"].status
    assert status in (-signal.SIGSEGV, -signal.SIGBUS)
    assert first.endswith(f": {signal.Signals(-status).name} at an address that no memory can have")
    assert rest == [LOAD, REMEDY]


def test_file_that_ends_earlier_than_its_mapping(ends: dict[str, End]) -> None:
    assert ends["bus"].status == -signal.SIGBUS
    first, line, *_ = ends["bus"].report
    assert ": SIGBUS at address 0x" in first
    assert line == LOAD


def test_handler_from_before_is_called_after_the_report(ends: dict[str, End]) -> None:
    text = ends["handler before"].text
    assert text.count("Fatal Python error: Segmentation fault") == 1
    assert text.index("triton_porting_kit:") < text.index("Fatal Python error")


def test_handler_from_after_passes_the_signal_on(ends: dict[str, End]) -> None:
    """It does not say then which instruction it was."""
    status, text = ends["handler after"]
    assert status == -signal.SIGSEGV
    assert text.count("Fatal Python error: Segmentation fault") == 1
    first = "kernel 'copied' crashed in program (0, 0, 0) of grid (4, 1, 1): SIGSEGV, which another handler has passed on"
    assert ends["handler after"].report == [first, REMEDY]


def test_crashes_of_others_are_not_touched(ends: dict[str, End]) -> None:
    for name, errors in (("others", 0), ("others, with a handler", 1), ("sent", 0)):
        status, text = ends[name]
        assert status == -signal.SIGSEGV
        assert "triton_porting_kit:" not in text
        assert text.count("Fatal Python error") == errors


def test_handlers_of_others_get_their_signals(ends: dict[str, End]) -> None:
    """Also those that are sent; and what is ignored stays so."""
    assert ends["handlers"] == (0, "")


def test_stack_for_signals_that_is_there_stays(ends: dict[str, End]) -> None:
    assert ends["stacks"] == (0, "")


def test_without_the_line_the_rest_is_told(ends: dict[str, End]) -> None:
    assert ends["no cache"].status == -signal.SIGSEGV
    first, *rest = ends["no cache"].report
    assert first.startswith("kernel 'copied' crashed in program (")
    assert rest == [REMEDY]


def test_threads_of_torch(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("torch")
    source = """
import torch
torch.ones(1 << 20).add(1)
copied[(4,)](torch.ones(64), Address(4096), 64, BLOCK=16)
"""
    folder = tmp_path_factory.mktemp("torch")
    folder.chmod(0o700)
    assert run({"torch": source}, str(folder))["torch"].report[1] == STORE

"""The stand-in for AMD's HIP runtime: how it is built, and what tests ask of it beside HIP's functions.

It has HIP's interface, real memory and real queues, and no GPU: no kernel ever runs on it. See standin/standin.h.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("standin")
FILE_NAME = "libamdhip64.so"


def hip_headers() -> Path:
    """AMD's headers of HIP, which Triton's wheel carries: the stand-in has their declarations and numbers."""
    import triton

    return Path(triton.__file__).parent / "backends" / "amd" / "include"


def compiler_command(*arguments: str | Path) -> list[str]:
    """The system's C++ compiler with what reading HIP's headers takes."""
    return [
        os.environ.get("CXX", "c++"),
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-D__HIP_PLATFORM_AMD__",
        f"-isystem{hip_headers()}",
        *map(str, arguments),
    ]


def build(cache: Path) -> Path:
    """The library, from a folder that keeps it as long as its sources and HIP's headers are the same."""
    sources = sorted(SOURCES.glob("*.*"))
    version = (hip_headers() / "hip" / "hip_version.h").read_bytes()
    command = compiler_command(
        "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-Wl,-z,nodelete,--no-undefined"
    )
    content = b"".join([repr(command).encode(), version, *(path.read_bytes() for path in sources)])
    library = cache / hashlib.sha256(content).hexdigest()[:16] / FILE_NAME
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder) / FILE_NAME
            # At once: most of the time goes into reading the headers.
            whole = "".join(f'#include "{path}"\n' for path in sources if path.suffix == ".cpp")
            subprocess.run([*command, "-xc++", "-", "-o", made], input=whole.encode(), check=True)
            with suppress(
                FileExistsError
            ):  # another process was quicker: what it has loaded stays where it is
                os.link(made, library)
    return library


@dataclass(frozen=True)
class Argument:
    """An argument of a launch, found by the code object's metadata. Offsets and sizes in bytes."""

    name: str
    kind: str
    offset: int
    size: int
    content: bytes
    live: bool
    """Whether it was an address in a live allocation when the kernel's turn came."""

    @property
    def hidden(self) -> bool:
        """Whether the runtime gives it, not the caller."""
        return self.kind.startswith("hidden_")

    @property
    def unsigned(self) -> int:
        return int.from_bytes(self.content, "little")


@dataclass(frozen=True)
class Launch:
    """What a launch was given. Sizes in bytes."""

    kernel: str
    device: int
    stream: int
    module: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    group_bytes: int
    wavefront: int
    cooperative: bool
    passed_bytes: int
    explicit_bytes: int
    segment: bytes
    arguments: tuple[Argument, ...]
    order: int
    """Of its start among all work; 0 before it starts."""

    @property
    def explicit(self) -> list[Argument]:
        """The arguments that the caller gives, in order."""
        return [argument for argument in self.arguments if not argument.hidden]


@dataclass(frozen=True)
class Operation:
    """Something that a queue has run. Times in nanoseconds."""

    kind: str
    device: int
    stream: int
    order: int
    started: int
    finished: int


@dataclass(frozen=True)
class Entry:
    """A call that was refused, or use of HIP that it promises nothing for (`undefined`)."""

    call: str
    text: str
    error: int
    undefined: bool


@dataclass
class Standin:
    """The library, loaded in this process."""

    path: Path
    library: ctypes.CDLL = field(init=False)

    def __post_init__(self) -> None:
        self.library = ctypes.CDLL(str(self.path))
        for name in ("arm", "calls", "live", "launches", "operations", "log"):
            getattr(self.library, f"standin_{name}").restype = ctypes.c_char_p

    def _ask(self, name: str, *arguments: Any) -> Any:
        return json.loads(getattr(self.library, f"standin_{name}")(*arguments))

    def configure(self, *architectures: str, memory_bytes: int = 1 << 30) -> None:
        """Forget everything and begin anew with these devices."""
        self.library.standin_configure(",".join(architectures).encode(), ctypes.c_uint64(memory_bytes))

    def durations(self, kernel_us: int = 0, copy_us: int = 0) -> None:
        """How long kernels and copies take, at least, in microseconds."""
        self.library.standin_durations(ctypes.c_uint64(kernel_us), ctypes.c_uint64(copy_us))

    @contextmanager
    def held(self, stream: int = 0, device: int = 0) -> Iterator[None]:
        """A context in which the work on a stream waits."""
        self.hold(stream, device)
        try:
            yield
        finally:
            self.release(stream, device)

    def hold(self, stream: int = 0, device: int = 0) -> None:
        assert not self.library.standin_hold(ctypes.c_uint64(stream), device, 1), "no such stream"

    def release(self, stream: int = 0, device: int = 0) -> None:
        """Let held work go on; a stream that is gone has none."""
        self.library.standin_hold(ctypes.c_uint64(stream), device, 0)

    def arm(self, *faults: str) -> None:
        """Arm faults, each ``function:nth:error[:stays]``; ``*``: any function, ``execute``: work in queues."""
        wrong = self.library.standin_arm(",".join(faults).encode())
        assert not wrong, wrong.decode()

    def disarm(self) -> bool:
        """Whether all armed faults have struck; they no longer do."""
        return bool(self.library.standin_disarm())

    def calls(self) -> dict[str, int]:
        """Calls since this was last asked, by function."""
        found: dict[str, int] = self._ask("calls")
        return found

    def live(self) -> dict[str, int]:
        """What is live, by kind of handle; ``bytes`` allocated and ``pending`` work."""
        found: dict[str, int] = self._ask("live")
        return found

    def launches(self, first: int = 0) -> list[Launch]:
        """The launches since the devices were configured, in the order of the calls."""
        return [
            Launch(
                **{
                    **launch,
                    "grid": tuple(launch["grid"]),
                    "block": tuple(launch["block"]),
                    "segment": bytes.fromhex(launch["segment"]),
                    "arguments": tuple(
                        Argument(**argument, content=bytes.fromhex(content))
                        for argument in launch["arguments"]
                        for content in [argument.pop("bytes")]
                    ),
                }
            )
            for launch in self._ask("launches", ctypes.c_uint64(first))
        ]

    def operations(self) -> list[Operation]:
        """What queues have run, in the order in which it ended."""
        return [Operation(**operation) for operation in self._ask("operations")]

    def log(self) -> list[Entry]:
        """What was refused or wrong since this was last asked."""
        return [Entry(**entry) for entry in self._ask("log")]

    def undefined(self) -> list[Entry]:
        """Of `log`, what no driver may do."""
        return [entry for entry in self.log() if entry.undefined]

    def read(self, address: int, size: int) -> bytes:
        """The content of device memory, past all queues."""
        content = ctypes.create_string_buffer(size)
        failed = self.library.standin_read(content, ctypes.c_uint64(address), ctypes.c_uint64(size))
        assert not failed, f"no device memory at {address:#x} + {size}"
        return content.raw


def leaks(standin: Standin) -> dict[str, int]:
    """What is live but for the events that a device keeps for its next copies."""
    return {kind: count for kind, count in standin.live().items() if count and kind != "events"}

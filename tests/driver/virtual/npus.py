"""Chips with a description under test, and kernels for them, which the system's C compiler builds."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from chips import Chip, call

from triton_porting_kit.abi.header import INCLUDE
from triton_porting_kit.chips import ChipDescription

KERNELS = Path(__file__).with_name("npu_kernels.c")
HEAD = KERNELS.read_text().partition("/* x, y, out, n:")[0]
"""The part of the file of kernels that others share."""
ADD = KERNELS.read_text().partition("/* a, b, c, type")[0]
"""The part that suits any chip: a vector addition."""


class UnitData(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 32),
        *((name, ctypes.c_uint64) for name in ("commands", "bytes", "busy", "ordered", "waited")),
    )


class MemoryData(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 32), ("bytes", ctypes.c_uint64), ("capacity", ctypes.c_uint64))


class Npu(Chip):
    """An open chip with a description, to which NumPy arrays and the names of kernels are passed."""

    def __init__(self, description: ChipDescription, **settings: Any) -> None:
        self.description = description
        text = description.text.encode()
        super().__init__(description=text, memory_bytes=1 << 30, **settings)
        self.modules: dict[str, int] = {}

    def launch_kernel(self, binary: bytes, name: str, grid: int, *args: int, queue: int = 0) -> None:
        """Launch a kernel of a binary with 64-bit arguments."""
        key = str(hash(binary))
        if key not in self.modules:
            self.modules[key] = self.load(binary)
        self.launch(self.symbol(self.modules[key], name), (grid, 1, 1), *args, queue=queue)

    def put(self, values: np.ndarray[Any, Any]) -> int:
        """New memory with the values of an array."""
        return self.array(values.tobytes())

    def get(self, address: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array at an address, of the shape and type of another one."""
        data = self.read(address, like.nbytes)
        return np.frombuffer(data, like.dtype).reshape(like.shape)


def unit(chip: Chip, number: int) -> UnitData:
    """The counters of a unit."""
    data = UnitData()
    call("unit_counters", chip.handle, ctypes.c_uint32(number), ctypes.byref(data))
    return data


def memory(chip: Chip, number: int) -> MemoryData:
    """The counters of a memory."""
    data = MemoryData()
    call("memory_counters", chip.handle, ctypes.c_uint32(number), ctypes.byref(data))
    return data


def build(folder: Path, text: str, description: ChipDescription) -> bytes:
    """A shared object of C text, in which the chip's memories and its digest have names."""
    bases = {memory.upper(): base for memory, base in description.window.items()}
    core = next(memory.name for memory in description.memories if memory.core_access)
    loads, stores = description.routed("global", core), description.routed(core, "global")
    channels = {"LOAD0": loads[0], "LOAD1": loads[-1], "STORE": stores[0], "CORE": description.window[core]}
    names = {**bases, **channels, "DIGEST": f"{description.digest}u"}
    defined = (f"-D{name}={value}" for name, value in names.items())
    (folder / "npu_kernels.c").write_text(text)
    command = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}", *defined]
    subprocess.run(
        [*command, "-o", folder / "kernels.so", folder / "npu_kernels.c"], check=True, capture_output=True
    )
    return (folder / "kernels.so").read_bytes()


def statements(folder: Path, body: str, description: ChipDescription) -> bytes:
    """The shared object of a kernel with the pointers x and y, and names for the memories of its window."""
    memories = [memory for memory in ("vector", "left", "right", "sums") if memory in description.window]
    names = "".join(f"int64_t {name} = (int64_t)window + {name.upper()}; (void){name};" for name in memories)
    start = f"const int64_t x = args[0], y = args[1]; (void)x; (void)y; (void)row; {names}"
    return build(folder, f"{HEAD}KERNEL(kernel, {{2, 0, 8}}) {{ {start} {body} return 0; }}", description)

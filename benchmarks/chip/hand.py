"""Builds the kernels of ``hand.c`` and launches them."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from triton_porting_kit.abi.header import INCLUDE
from triton_porting_kit.chips import ChipDescription

SOURCE = Path(__file__).with_name("hand.c")


def build(chip: ChipDescription) -> bytes:
    """The shared object of the kernels for a chip."""
    bases = {memory.upper(): base for memory, base in chip.window.items()}
    names = {**bases, "DIGEST": f"{chip.digest}u"}
    defined = [f"-D{name}={value}" for name, value in names.items()]
    flags = ["-O3", "-march=native", "-fno-math-errno", "-Wall", "-Werror", "-shared", "-fPIC"]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "hand.so")
        subprocess.run(["cc", *flags, f"-I{INCLUDE}", *defined, "-o", made, SOURCE], check=True)
        return made.read_bytes()


class Hand:
    """The kernels on a device: `triton_porting_kit.driver.Device` of a virtual chip."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._module = device.load_module(build(device.description), "hand")

    def launch(self, name: str, grid: tuple[int, ...], *arguments: Any) -> None:
        """Launch a kernel. Arguments are arrays, integers, and floats, which are passed as bits."""
        function = self._device.get_function(self._module, name)
        self._device.launch(function, grid, 0, b"".join(_packed(argument) for argument in arguments))


def _packed(argument: Any) -> bytes:
    if isinstance(argument, float):
        return struct.pack("<fi", argument, 0)
    return struct.pack("<q", argument if isinstance(argument, int) else argument.data_ptr())

"""A recorded kernel on the CPU reference: compiled from what Triton's front end made of it, run on recorded memory."""

from __future__ import annotations

import contextlib
import struct
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triton_porting_kit.compare import rounding_rules, widening
from triton_porting_kit.compare.widening import CannotWiden
from triton_porting_kit.compiler import CpuTarget, artefacts, cpu_pipeline, structured, ttir
from triton_porting_kit.driver import DEFAULT_STREAM
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import DeviceError, LaunchTimeout, MemoryAccessError, PortingKitError
from triton_porting_kit.replay import Capture
from triton_porting_kit.replay.manifest import Manifest, Slot
from triton_porting_kit.toolchain import compat, mlir

Memory = list[NDArray[np.uint8]]
"""What is in the buffers of a launch."""
Argument = bytes | NDArray[np.uint8]
"""Of a kernel that was changed: a number, packed, or memory, by what is in it."""
Place = tuple[int, int]
"""Of memory: its address and its bytes."""

_TIDY = "builtin.module(canonicalize{region-simplify=disabled},cse,loop-invariant-code-motion)"
_KEPT = 64
"""Kernels that stay compiled, the last ones that were used."""

_WAITS = ("tpk.atomic_cas", "tpk.atomic_poll")
_ATOMICS = ("tpk.atomic_rmw", *_WAITS)


class NotCompared(Exception):
    """A launch that the reference cannot run, or says nothing about; the text says why."""


@dataclass(frozen=True)
class Variation:
    """How the float64 version of a kernel treats roundings; see `widening`."""

    amount: float = 0.0
    direction: float = 0.0
    seed: int = 0

    def packed(self) -> tuple[bytes, ...]:
        return struct.pack("<d", self.amount), struct.pack("<d", self.direction), struct.pack("<q", self.seed)


def variations(count: int, first: int = 0) -> list[Variation]:
    """So many ways in which all roundings may turn out, stores alternating up and down."""
    return [
        Variation(1.0, 1.0 if n % 2 else -1.0, 0x5851F42D4C957F2D * (n + 1) % 2**63)
        for n in range(first, first + count)
    ]


class Kernels:
    """Kernels that are compiled for the reference, and the device that runs them."""

    def __init__(self) -> None:
        self.device = HostDevice()
        self._kernels: OrderedDict[tuple[str, int], Kernel] = OrderedDict()

    def of(self, capture: Capture) -> Kernel:
        """The kernel of a recorded launch. Raises `NotCompared` where the reference cannot have it."""
        source = capture.manifest.kernel.source
        if source is None:
            raise NotCompared(
                "Triton did not keep the kernel's IR (TRITON_STORE_BINARY_ONLY, or the launch was recorded by an older "
                "kit)"
            )
        key = (source.sha256, programs(capture.manifest))
        kernel = self._kernels.pop(key, None) or self.kernel(capture, _structured_text(capture))
        self._kernels[key] = kernel
        while len(self._kernels) > _KEPT:
            _, old = self._kernels.popitem(last=False)
            old.unload()
        return kernel

    def kernel(self, capture: Capture, text: str) -> Kernel:
        """A kernel of a recorded launch from another structured form."""
        return Kernel(self.device, capture.manifest.kernel.name, text, programs(capture.manifest))


Change = Callable[[Any], object]
"""Changes a structured module."""


class Kernel:
    """One kernel, in its own types and in float64; each is compiled when it is first run."""

    def __init__(self, device: HostDevice, name: str, text: str, count: int) -> None:
        """`text`: its structured form; `count`: of the grid's programs."""
        self._device, self._name, self._programs = device, name, count
        self.text = text
        self._functions: dict[tuple[str, bool], tuple[int, int]] = {}
        module = self.module()
        self.varies = rounding_rules.varies(module)
        """Whether right results may differ, because it rounds numbers or has operations without a result."""
        self.depends_on_order = _depends_on_order(module)
        """Why results may depend on the order in which programs run; empty where they do not."""

    def module(self) -> Any:
        """Its structured form, to be changed."""
        return mlir.parse_module(self.text)

    def unload(self) -> None:
        """Give back what the device holds."""
        for module, _ in self._functions.values():
            self._device.unload_module(module)
        self._functions.clear()

    @cached_property
    def cannot_widen(self) -> str:
        """Why there is no float64 version; empty where there is one."""
        try:
            self._function("", None, wide=True)
        except CannotWiden as error:
            return str(error)
        except PortingKitError as error:
            return f"its float64 version does not compile: {error}"
        return ""

    def run(
        self,
        capture: Capture,
        variation: Variation | None = None,
        *,
        name: str = "",
        change: Change | None = None,
        more: Sequence[Argument] = (),
    ) -> Memory:
        """What a launch leaves in memory: in the kernel's own types, or, with a `variation`, computed in float64.

        `change` makes another kernel, by the `name` of which it is kept; `more` are the arguments that this has more.
        What is left in those that are memory comes last. Raises `NotCompared`.
        """
        function = self._function(name, change, wide=variation is not None)
        arguments = [*more, *(() if variation is None else variation.packed())]
        device, manifest = self._device, capture.manifest
        with contextlib.ExitStack() as stack:

            def place(content: NDArray[np.uint8], alignment: int) -> int:
                address = device.memalloc(max(content.nbytes, 1), max(64, alignment))
                stack.callback(device.memfree, address)
                if content.nbytes:
                    device.memcpy_htod(address, content)
                return address

            contents = [
                np.frombuffer(capture.content(buffer.before), np.uint8) for buffer in manifest.buffers
            ]
            places = [
                (place(content, buffer.alignment), content.nbytes)
                for content, buffer in zip(contents, manifest.buffers, strict=True)
            ]
            added = [
                argument if isinstance(argument, bytes) else (place(argument, 64), argument.nbytes)
                for argument in arguments
            ]
            block = argument_block(capture, places, added, checked=True)
            try:
                device.launch(function, manifest.grid, DEFAULT_STREAM, block)
                device.synchronize(DEFAULT_STREAM)
            except MemoryAccessError as error:
                raise NotCompared(f"it accesses memory outside of its arguments: {error}") from error
            except LaunchTimeout as error:
                raise NotCompared(f"the reference takes too long: {error}") from error
            except DeviceError as error:
                raise NotCompared(f"on the reference it fails: {error}") from error
            result = []
            for address, size in (*places, *(item for item in added if not isinstance(item, bytes))):
                content = np.empty(size, np.uint8)
                if size:
                    device.memcpy_dtoh(content, address)
                result.append(content)
            return result

    def _function(self, name: str, change: Change | None, *, wide: bool) -> int:
        key = (name, wide)
        if key not in self._functions:
            made = self.module()
            if change is not None:
                change(made)
            if wide:
                widening.widen(made, self._programs)
            module = self._device.load_module(compiled(made), self._name)
            self._functions[key] = (module, self._device.get_function(module, self._name))
        return self._functions[key][1]


def programs(manifest: Manifest) -> int:
    """How many programs a launch has."""
    x, y, z = manifest.grid
    return x * y * z


def own_slots(manifest: Manifest) -> list[Slot]:
    """The kernel's parameters, without those that a backend's launcher adds."""
    return manifest.slots[: len(manifest.slots) - len(manifest.layout.get("hidden", ()))]


def argument_block(
    capture: Capture, places: Sequence[Place], more: Sequence[bytes | Place] = (), *, checked: bool = False
) -> bytes:
    """The argument block of a kernel that has `more` parameters behind its own, with its buffers at `places`.

    `checked`: for one that checks its accesses, whose bounds follow (docs/architecture.md).
    """
    slots = own_slots(capture.manifest)
    end = max((slot.offset + slot.size for slot in slots), default=0)
    block = bytearray(capture.block[:end])
    bounds: list[Place] = []
    for slot in slots:
        if slot.is_pointer and slot.buffer is not None:
            address, size = places[slot.buffer]
            block[slot.offset : slot.offset + 8] = (address + (slot.buffer_offset or 0)).to_bytes(8, "little")
            bounds.append((address, size))
        elif slot.is_pointer:
            bounds.append((0, 0))
    for argument in more:
        if not isinstance(argument, bytes):
            bounds.append(argument)
        content = argument if isinstance(argument, bytes) else argument[0].to_bytes(8, "little")
        block += bytes(-len(block) % len(content)) + content
    block += bytes(-len(block) % 8)
    return bytes(block) + (b"".join(struct.pack("<QQ", *place) for place in bounds) if checked else b"")


def compiled(module: Any) -> bytes:
    """The object of a structured module for this machine, which checks its accesses. Raises `CompilationError`."""
    artefacts.verify(module)
    mlir.run_passes(module, _TIDY)
    pipeline = cpu_pipeline(CpuTarget.host(), check_memory=True)
    made: bytes = pipeline.after("structured").run(artefacts.mlir_artefact(module), {})["obj"]
    return made


def _structured_text(capture: Capture) -> str:
    """The structured form that the reference makes of a recorded kernel, without what prints."""
    stored = capture.manifest.kernel.source
    assert stored is not None
    try:
        with tempfile.TemporaryDirectory(prefix="tpk-compare-") as folder:
            path = Path(folder) / "kernel.ttir"
            path.write_bytes(capture.content(stored))
            source = compat.read_ttir(path)
        ttir.optimize(source)
        module = structured.import_ttir(compat.generic_text(source))
    except (PortingKitError, RuntimeError) as error:
        raise NotCompared(f"the reference does not compile it: {error}") from error
    for operation in list(_operations(module)):
        if operation.name == "tpk.print":
            operation.erase()
    return str(module.operation.get_asm(enable_debug_info=True))


def _operations(module: Any) -> Iterator[Any]:
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        found.append(operation)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _depends_on_order(module: Any) -> str:
    for operation in _operations(module):
        if operation.name == "tpk.atomic_poll":
            return "its programs wait for one another"
        if operation.name in _ATOMICS and any(True for result in operation.results for _ in result.uses):
            return "it uses what atomic operations found in memory"
        if operation.name == "tpk.atomic_cas" or (
            operation.name == "tpk.atomic_rmw" and rounding_rules.kind_of(operation) in ("exch", "xchg")
        ):
            return "its programs exchange values atomically"
    return ""

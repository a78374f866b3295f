"""A recorded kernel on the CPU reference: compiled from the IR of Triton's front end, run on recorded memory."""

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
"""The contents of the buffers of a launch."""
Argument = bytes | NDArray[np.uint8]
"""An additional argument of a changed kernel: a packed number, or the content of memory."""
Place = tuple[int, int]
"""The address and the size in bytes of memory."""

_TIDY = "builtin.module(canonicalize{region-simplify=disabled},cse,loop-invariant-code-motion)"
_KEPT = 64
"""The number of recently used kernels that stay compiled."""

_WAITS = ("tpk.atomic_cas", "tpk.atomic_poll")
_ATOMICS = ("tpk.atomic_rmw", *_WAITS)


class NotCompared(Exception):
    """The reference cannot run a launch, or cannot judge it. The message says why."""


@dataclass(frozen=True)
class Variation:
    """How the float64 version of a kernel simulates roundings; see `widening`."""

    amount: float = 0.0
    direction: float = 0.0
    seed: int = 0

    def packed(self) -> tuple[bytes, ...]:
        return struct.pack("<d", self.amount), struct.pack("<d", self.direction), struct.pack("<q", self.seed)


def variations(count: int, first: int = 0) -> list[Variation]:
    """`count` random outcomes of all roundings. Stores alternately round up and down."""
    return [
        Variation(1.0, 1.0 if n % 2 else -1.0, 0x5851F42D4C957F2D * (n + 1) % 2**63)
        for n in range(first, first + count)
    ]


class Kernels:
    """The kernels compiled for the reference, and the device that runs them."""

    def __init__(self) -> None:
        self.device = HostDevice()
        self._kernels: OrderedDict[tuple[str, int], Kernel] = OrderedDict()

    def of(self, capture: Capture) -> Kernel:
        """The kernel of a recorded launch. Raises `NotCompared` if the reference cannot compile it."""
        source = capture.manifest.kernel.source
        if source is None:
            raise NotCompared(
                "Triton did not keep the kernel's IR (TRITON_STORE_BINARY_ONLY was set), or an older kit recorded the "
                "launch"
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
    """A kernel in its own types and in float64. Each version is compiled when it is first run."""

    def __init__(self, device: HostDevice, name: str, text: str, count: int) -> None:
        """`text`: the structured form; `count`: the number of programs in the grid."""
        self._device, self._name, self._programs = device, name, count
        self.text = text
        self._functions: dict[tuple[str, bool], tuple[int, int]] = {}
        module = self.module()
        self.varies = rounding_rules.varies(module)
        """Whether correct results may differ: it rounds numbers, or has operations with undefined results."""
        self.depends_on_order = _depends_on_order(module)
        """Why results may depend on the order in which programs run; empty if they do not."""

    def module(self) -> Any:
        """A copy of the structured form, which may be changed."""
        return mlir.parse_module(self.text)

    def unload(self) -> None:
        """Unload all versions from the device."""
        for module, _ in self._functions.values():
            self._device.unload_module(module)
        self._functions.clear()

    @cached_property
    def cannot_widen(self) -> str:
        """Why there is no float64 version; empty if there is one."""
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
        """The memory after a launch: computed in the kernel's own types, or in float64 with a `variation`.

        `change` changes the kernel; the result is cached under `name`, and `more` are its additional arguments. The
        contents of those that are memory come last in the result. Raises `NotCompared`.
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
                raise NotCompared(f"it fails on the reference: {error}") from error
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
    """The number of programs of a launch."""
    x, y, z = manifest.grid
    return x * y * z


def own_slots(manifest: Manifest) -> list[Slot]:
    """The kernel's parameters, without those that a backend's launcher adds."""
    return manifest.slots[: len(manifest.slots) - len(manifest.layout.get("hidden", ()))]


def argument_block(
    capture: Capture, places: Sequence[Place], more: Sequence[bytes | Place] = (), *, checked: bool = False
) -> bytes:
    """The argument block of a kernel with its buffers at `places` and `more` parameters after its own.

    `checked`: for a kernel that checks its accesses; the bounds follow the arguments (docs/architecture.md).
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
    """Compile a structured module for this machine, with checked accesses. Raises `CompilationError`."""
    artefacts.verify(module)
    mlir.run_passes(module, _TIDY)
    pipeline = cpu_pipeline(CpuTarget.host(), check_memory=True)
    made: bytes = pipeline.after("structured").run(artefacts.mlir_artefact(module), {})["obj"]
    return made


def _structured_text(capture: Capture) -> str:
    """The reference's structured form of a recorded kernel, without prints."""
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
        raise NotCompared(f"the reference cannot compile it: {error}") from error
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

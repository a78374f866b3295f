"""What `benchmarks.counts` counts: run under callgrind, which learns where each section ends and how it is called.

Everything is warmed up before callgrind begins to count, so that libraries are loaded and caches of Python filled.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

from triton.runtime import driver

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.kernels.places import DevicePlace
from triton_porting_kit.toolchain import llvm

from .compiling import FRONT_END, STAGES, compiled, forget, fresh_cache
from .launching import empty_kernel

LAUNCHES = 200

# Valgrind's client requests on x86-64: a sequence that does nothing elsewhere. Callgrind's numbers are "CT" and more.
_REQUEST_IR = """
define i64 @request(ptr %arguments) {
  %answer = call i64 asm sideeffect
    "rolq $$3, %rdi; rolq $$13, %rdi; rolq $$61, %rdi; rolq $$51, %rdi; xchgq %rbx, %rbx",
    "={rdx},{rax},0,~{cc},~{memory}"(ptr %arguments, i64 0)
  ret i64 %answer
}
"""
_CALLGRIND = ord("C") << 24 | ord("T") << 16
_ZERO, _DUMP, _START, _STOP = (_CALLGRIND + number for number in (1, 3, 4, 5))


class Marks:
    """The end of each section, told to callgrind; without a name the section is dropped."""

    def __init__(self) -> None:
        module = llvm.parse(_REQUEST_IR, llvm.host_triple())
        self._code = llvm.LinkedObject(llvm.emit_object(module, llvm.target_machine()), ["request"])
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._code.addresses["request"])

    def _request(self, number: int, text: bytes = b"") -> None:
        content = ctypes.create_string_buffer(text)
        self._function((ctypes.c_uint64 * 6)(number, ctypes.addressof(content), 0, 0, 0, 0))

    def start(self) -> None:
        """Count from here on."""
        self._request(_START)

    def stop(self) -> None:
        """Count no more."""
        self._request(_STOP)

    def mark(self, name: str) -> None:
        """What ran since the last mark is `name`; begin to count anew."""
        if name:
            self._request(_DUMP, name.encode())
        self._request(_ZERO)


def watch_stages(marks: Marks, current: list[str]) -> None:
    """Have a mark between Triton's front end and our stages, and one after them."""
    original = CPUBackend.add_stages

    def add_stages(self: Any, stages: dict[str, Callable[..., Any]], *arguments: Any) -> Any:
        result = original(self, stages, *arguments)
        names = list(stages)
        first, last = stages[names[0]], stages[names[-1]]

        def begin(source: Any, metadata: Any) -> Any:
            marks.mark(f"{current[0]}: {FRONT_END}" if current[0] else "")
            return first(source, metadata)

        def end(source: Any, metadata: Any) -> Any:
            made = last(source, metadata)
            marks.mark(f"{current[0]}: {STAGES}" if current[0] else "")
            return made

        stages[names[0]], stages[names[-1]] = begin, end
        return result

    CPUBackend.add_stages = add_stages  # type: ignore[method-assign, assignment]


def main() -> None:
    """Warm up, then run every section once."""
    marks, current = Marks(), [""]
    watch_stages(marks, current)
    place = DevicePlace(driver.active.device)
    entries = compiled()
    arrays = {name: [place.put(operand) for operand in case.operands()] for name, case, _ in entries}
    for counted in (False, True):
        if counted:
            marks.start()
        for name, case, kernels in entries:
            print("counting" if counted else "warming up", name, file=sys.stderr, flush=True)
            with fresh_cache():
                forget(kernels)
                gc.collect()
                gc.disable()
                current[0] = f"compile {name}" if counted else ""
                marks.mark("")
                case.launch(arrays[name])
                marks.mark("")
                forget(kernels)
                marks.mark("")
                case.launch(arrays[name])
                marks.mark(f"warm start {name}" if counted else "")
                gc.enable()
    current[0] = ""
    pointers = arrays["vector add"]
    arguments = (*pointers, pointers[0], 16)
    launched = empty_kernel[(1,)](*arguments)
    rest = (0, launched.function, launched.packed_metadata, None, None, None, *arguments)
    launcher = launched.run
    for counted in (False, True):
        gc.disable()
        marks.mark("")
        for _ in range(LAUNCHES):
            launcher(1, 1, 1, *rest)
        marks.mark(f"launcher object, {LAUNCHES} calls" if counted else "")
        for _ in range(LAUNCHES):
            empty_kernel[(1,)](*arguments)
        marks.mark(f"kernel[grid](...), {LAUNCHES} calls" if counted else "")
        launcher(10_000, 1, 1, *rest)
        marks.mark("grid of 10000 programs" if counted else "")
        gc.enable()
    marks.stop()


if __name__ == "__main__":
    main()

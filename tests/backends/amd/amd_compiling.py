"""Compiling for AMD's architectures, with this backend and with Triton's own, each thing once in a session."""

from __future__ import annotations

import re
from typing import Any

import amd_kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.backends.amd.targets import architecture

STAGES = ("ttir", "ttgir", "llir", "amdgcn", "hsaco")
HINTS = [["tt.divisibility", 16], ["tt.pointer_range", 32]]
ARCHITECTURES = AMDBackend.architectures()

_done: dict[Any, Any] = {}


def source(name: str, arguments: amd_kernels.Arguments | None = None) -> ASTSource:
    """A kernel of `amd_kernels`, with aligned pointers to less than 2 GiB."""
    types, constants = arguments or amd_kernels.ARGUMENTS[name]
    kernel = getattr(amd_kernels, name)
    pointers = [i for i, argument in enumerate(kernel.arg_names) if types.get(argument, "").startswith("*")]
    return ASTSource(
        kernel, {**types, **dict.fromkeys(constants, "constexpr")}, constants, {(i,): HINTS for i in pointers}
    )


def compiled(
    name: str,
    arch: str = "gfx942",
    *,
    backend: str = "amdgpu",
    arguments: amd_kernels.Arguments | None = None,
    **options: Any,
) -> Any:
    """A compiled kernel of `amd_kernels`."""
    key = (name, arch, backend, str(arguments), str(options))
    if key not in _done:
        target = GPUTarget(backend, arch, architecture(arch).warp_size)
        _done[key] = triton.compile(source(name, arguments), target=target, options=options)
    return _done[key]


def forget() -> None:
    """Compile everything again from now on."""
    _done.clear()


def instructions(assembly: str) -> list[str]:
    """The mnemonics in an assembly text, in order."""
    return [found[1] for line in assembly.splitlines() if (found := re.match(r"^\t([a-z]\w+)", line))]


def without_our_symbol(assembly: str) -> str:
    """Assembly without what this backend adds to it at the end."""
    return re.sub(r"\n\n\t\.globl\t\"[^\"]+\"\n\t\.set\t\"[^\"]+\", \d+\n$", "\n", assembly)

"""Facts about the kernel in the texts of the stages ``llir`` and ``amdgcn``: its name and its local memory."""

from __future__ import annotations

import re

from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

DYNAMIC_LDS = "dynamic_group_segment_size"
"""Suffix of a symbol in the code object: the bytes of local memory that a launch must provide.

``NAME.dynamic_group_segment_size`` is for kernel NAME, in addition to the local memory in its descriptor. Triton's
lowering allocates local memory at the launch, so nothing else in the file has this number.
"""

LOCAL_MEMORY = "tpk-local-memory-bytes"
"""The same as an attribute of the kernel in LLVM IR, for users who continue from that text without the metadata."""

_SYMBOL = re.compile(rf'^\s*\.set\s+"([^"]+\.{DYNAMIC_LDS})",\s*(\d+)', re.MULTILINE)
_LLVM_KERNEL = re.compile(r"^define [^@\n]*amdgpu_kernel [^@\n]*@(?:\"([^\"]+)\"|([\w.$-]+))", re.MULTILINE)
_ASSEMBLY_KERNEL = re.compile(r"^\s*\.amdhsa_kernel\s+(\S+)", re.MULTILINE)


_EXCHANGE = re.compile(r"\btt\.atomic_rmw exch\b[^\n]*!tt\.ptr<(\w+)")
_EXCHANGED_BY_BUFFERS = frozenset({"i16", "i32", "i64", "f16", "bf16", "f32"})

_BEYOND_COPIES = re.compile(
    r"\btt\.descriptor_reduce\b|\btt\.make_tensor_descriptor\b[^\n]*\bpadding = (?!1\b)\d"
)
_ROWS = re.compile(r"\btt\.descriptor_(?:gather|scatter)\b")
_RANK_5 = re.compile(r"\btt\.make_tensor_descriptor\b[^\n]*<(?:\d+x){5}")


def has_descriptor_beyond_hardware(ttir: str) -> bool:
    """Whether TTIR has a tensor descriptor that gfx1250's copies do not support: atomics, or padding other than 0.

    Or one that some releases of Triton do not lower to them: rows by index, five dimensions.
    """
    lacking = [_BEYOND_COPIES]
    if not compat.amd.copies_rows_by_descriptor():
        lacking.append(_ROWS)
    if not compat.amd.copies_rank_5_by_descriptor():
        lacking.append(_RANK_5)
    return any(pattern.search(ttir) for pattern in lacking)


def has_exchange_without_buffers(ttir: str) -> bool:
    """Whether TTIR has an exchange that LLVM's buffer instructions lack: f64, and in older releases any type."""
    by_buffers = _EXCHANGED_BY_BUFFERS if compat.amd.exchanges_by_buffers() else ()
    return any(element not in by_buffers for element in _EXCHANGE.findall(ttir))


def with_local_memory(assembly: str, name: str, size: int) -> str:
    """The assembly with the symbol for the bytes of local memory that a launch must provide.

    Text that already has it, such as a user's file, is not changed.
    """
    if _SYMBOL.search(assembly):
        return assembly
    symbol = f'"{name}.{DYNAMIC_LDS}"'
    return f"{assembly.rstrip()}\n\n\t.globl\t{symbol}\n\t.set\t{symbol}, {size}\n"


def local_memory_of_llvm(text: str, default: int) -> int:
    """Bytes of local memory that a launch must provide, from LLVM IR of the stage ``llir``."""
    found = re.search(rf'"{LOCAL_MEMORY}"="(\d+)"', text)
    return int(found[1]) if found else default


def local_memory_of_assembly(text: str, name: str, default: int) -> int:
    """Bytes of local memory that a launch must provide, from assembly of the stage ``amdgcn``."""
    sizes = {symbol: int(size) for symbol, size in _SYMBOL.findall(text)}
    return sizes.get(f"{name}.{DYNAMIC_LDS}", default)


def kernel_of_llvm(text: str) -> str:
    """The name of the kernel in LLVM IR. Raises `CompilationError` unless there is exactly one."""
    return _only([quoted or plain for quoted, plain in _LLVM_KERNEL.findall(text)], "LLVM IR")


def kernel_of_assembly(text: str) -> str:
    """The name of the kernel in assembly. Raises `CompilationError` unless there is exactly one."""
    return _only([name.strip('"') for name in _ASSEMBLY_KERNEL.findall(text)], "assembly")


def check_llvm(text: object) -> None:
    """Raise `CompilationError` unless a text is LLVM IR of one kernel."""
    kernel_of_llvm(str(text))


def check_assembly(text: object) -> None:
    """Raise `CompilationError` unless a text is assembly of one kernel."""
    kernel_of_assembly(str(text))


def _only(names: list[str], what: str) -> str:
    if len(names) != 1:
        raise CompilationError(
            f"the {what} holds {len(names)} kernels{': ' if names else ''}{', '.join(names)}",
            remedy="give a text with one kernel",
        )
    return names[0]

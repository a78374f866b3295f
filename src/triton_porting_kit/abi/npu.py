"""The intrinsics of chips with on-chip memory, as a compiler declares and calls them.

``include/tpk_npu.h`` is their one definition and explains each; tests hold this table against it.
"""

from __future__ import annotations

from dataclasses import dataclass

CHIP = "__chip"
"""The suffix of a kernel's name in the symbol that holds the digest of the chip it was compiled for, a uint64_t."""

PREFIX = "tpk_npu_"

UNITS = {"core": 0, "matrix": 1, "dma": 2}
"""The units of a core; DMA channel c is ``UNITS["dma"] + c``."""

_TYPES = "i8 i16 i32 i64 u8 u16 u32 u64 fp16 bf16 fp32 fp64 fp8e4nv fp8e5 fp8e4b8 fp8e5b16"
TYPES = {name: number for number, name in enumerate(_TYPES.split(), start=1)}
"""Element types of the matrix unit and of atomics, by Triton's name."""

FLAGS = {"accumulate": 1, "transposed_a": 2, "transposed_b": 4}
"""Flags of a product."""

KINDS = {
    name: number
    for number, name in enumerate(
        ("scalar", "simple", "multiply", "divide", "special", "load", "store", "rearrange", "convert")
    )
}
"""Kinds of work of a core, named as in a chip's description."""

WORK_PARTS = 1024
"""Parts of an instruction in which ``tpk_npu_works`` takes an iteration's work."""

ATOMICS = {
    name: number
    for number, name in enumerate(("add", "and", "or", "xor", "max", "min", "exchange", "compare"))
}
"""Kinds of atomics."""

DIMENSIONS = 5
"""The most dimensions of a transfer."""

TRANSFER = (
    ("target", "int64_t", 1),
    ("source", "int64_t", 1),
    ("target_strides", "int64_t", DIMENSIONS),
    ("source_strides", "int64_t", DIMENSIONS),
    ("sizes", "int64_t", DIMENSIONS),
    ("low", "int64_t", DIMENSIONS),
    ("high", "int64_t", DIMENSIONS),
    ("fill", "int64_t", 1),
    ("keeps", "int64_t", 1),
    ("element_bytes", "int32_t", 1),
    ("dimensions", "int32_t", 1),
)
"""The fields of ``tpk_npu_transfer``: name, type, count. They lie without gaps."""

TRANSFER_BYTES = sum(count * (8 if kind == "int64_t" else 4) for _, kind, count in TRANSFER)


@dataclass(frozen=True)
class Intrinsic:
    """A function: its parameters' names and C types, and the type of its result, ``void`` for none."""

    parameters: tuple[tuple[str, str], ...]
    result: str = "void"

    @property
    def mlir(self) -> tuple[tuple[str, ...], str | None]:
        """The types of parameters and result in MLIR's dialect ``llvm``; None for no result."""
        return tuple(_MLIR[kind] for _, kind in self.parameters), _MLIR.get(self.result)


_MLIR = {
    "int32_t": "i32",
    "int64_t": "i64",
    "uint64_t": "i64",
    "const tpk_npu_transfer *": "!llvm.ptr",
    "const int64_t *": "!llvm.ptr",
}


def _intrinsic(result: str, parameters: str) -> Intrinsic:
    parts = (part.strip().rpartition(" ") for part in parameters.split(","))
    pairs = ((name.lstrip("*"), f"{kind} *" if name.startswith("*") else kind) for kind, _, name in parts)
    return Intrinsic(tuple(pairs), result)


_OFFSETS = "int32_t channel, int64_t local, int64_t base, int64_t offsets, int64_t mask, int64_t count, "
_SIZES = "int32_t element_bytes, int32_t offset_bytes, int32_t scale, "
_STRIDES = "int64_t c_stride, int64_t a_stride, int64_t b_stride, "

INTRINSICS = {
    f"{PREFIX}{name}": _intrinsic(result, parameters)
    for name, result, parameters in (
        ("dma", "int64_t", "int32_t channel, const tpk_npu_transfer *transfer, int32_t line"),
        ("gather", "int64_t", f"{_OFFSETS}{_SIZES}int64_t fill, int32_t line"),
        ("scatter", "int64_t", f"{_OFFSETS}{_SIZES}int32_t line"),
        (
            "matrix",
            "int64_t",
            f"int64_t c, int64_t a, int64_t b, int32_t m, int32_t n, int32_t k, {_STRIDES}"
            "int32_t a_type, int32_t b_type, int32_t c_type, int32_t flags, int32_t line",
        ),
        ("wait", "void", "int32_t unit, int64_t token"),
        ("order", "void", "int32_t unit, int32_t other, int64_t token"),
        ("reads", "void", "int64_t address, int64_t bytes, int32_t line"),
        ("writes", "void", "int64_t address, int64_t bytes, int32_t line"),
        ("work", "void", "int32_t kind, int64_t count"),
        ("works", "void", "const int64_t *parts, int64_t iterations"),
        ("element_load", "uint64_t", "int64_t address, int32_t bytes, int32_t line"),
        ("element_store", "void", "int64_t address, uint64_t value, int32_t bytes, int32_t line"),
        (
            "atomic",
            "uint64_t",
            "int32_t kind, int32_t type, int64_t address, uint64_t value, uint64_t compare, int32_t order, "
            "int32_t line",
        ),
    )
}
"""Every intrinsic by the name of its function."""

"""What the lowering knows of the core: the window of local memories, and the numbers of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triton_porting_kit.abi.npu import CHIP, INTRINSICS, UNITS
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering


@dataclass(frozen=True)
class Window:
    """A core's local memories, in bytes from the start of its window: where each begins, and where scratch does."""

    bases: Mapping[str, int]
    scratch: int
    bytes: int
    """Of the whole window."""
    chip: int
    """The digest of the chip's description."""
    symbol = CHIP
    """The symbol of a kernel that holds it."""

    @property
    def symbol_value(self) -> int:
        """The digest as the signed number that MLIR takes."""
        return (self.chip + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass
class Core:
    """The part of the lowering's state that belongs to chips."""

    bases: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[Value, ...] = ()
    """The first program to run, and the one behind the last."""
    descriptors: dict[tuple[tuple[int, Value], ...], Value] = field(default_factory=dict)
    """The descriptors of transfers, by the values that are always the same in them."""
    window: Value = field(default_factory=lambda: Value("%scratch", "!llvm.ptr", 0))


def unit_number(name: str) -> int:
    """The number of a unit: ``matrix``, or ``dma0`` and so on."""
    return UNITS["dma"] + int(name[3:]) if name.startswith("dma") else UNITS[name]


def call(lowering: Lowering, name: str, arguments: Sequence[Value]) -> Value | None:
    """Call the intrinsic ``tpk_npu_<name>``. Memory may have changed behind it."""
    routine = f"tpk_npu_{name}"
    parameters, result = INTRINSICS[routine].mlir
    found = tuple(value.type for value in arguments)
    assert found == parameters, f"{routine} takes {parameters}, not {found}"
    value = lowering.data.call(routine, arguments, result)
    lowering.builder.forget_reads()
    return value


def result_of(lowering: Lowering, name: str, arguments: Sequence[Value]) -> Value:
    """The result of an intrinsic that has one."""
    value = call(lowering, name, arguments)
    assert value is not None
    return value

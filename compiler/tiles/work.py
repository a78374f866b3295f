"""Counts what vector code executes, for the chip's time: calls of ``tpk_npu_work`` in the loops module.

Loops are written for vectors of the host's size, and the chip's instructions take more. The work of a block whose
widest vector has w bytes is therefore w / (the vector unit's bytes) instructions for each operation; of the scalars
beside them, too, since the chip's loop would have as many fewer iterations. Loads and stores count their own bytes.
Work is told before the next command, so
that it lies between the right ones, and loops without commands are told as a whole. An expanded function of
elements counts as one special instruction; a product that may be contracted with a sum, as one multiplication with it;
a constant offset of an address, as nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from triton_porting_kit.abi.npu import KINDS, PREFIX
from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.toolchain.mlir import ir

_ROUTINE = f"{PREFIX}work"
_ANNOUNCEMENTS = (f"{PREFIX}reads", f"{PREFIX}writes")
_VECTOR = re.compile(r"vector<(\d+)x(\D+)(\d*)>")
_FUNCTION = re.compile(r"function:\d+")
_FREE = (
    "arith.constant", "llvm.mlir.constant", "llvm.getelementptr", "llvm.mlir.addressof", "llvm.mlir.poison",
    "llvm.mlir.zero", "llvm.ptrtoint", "llvm.inttoptr", "llvm.alloca", "arith.bitcast", "vector.bitcast",
    "scf.yield", "scf.condition", "llvm.return",
)  # fmt: skip
_OF_KINDS = {
    "multiply": ("arith.mulf", "arith.muli", "math.fma", "arith.mulsi_extended", "arith.mului_extended"),
    "divide": (
        "arith.divf", "arith.remf", "math.sqrt", "math.rsqrt", "arith.divsi", "arith.divui", "arith.remsi",
        "arith.remui",
    ),
    "convert": (
        "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp",
        "arith.fptosi", "arith.fptoui",
    ),
    "load": (
        "llvm.load", "vector.load", "vector.maskedload", "llvm.intr.masked.load", "vector.gather",
        "llvm.intr.masked.gather",
    ),
    "store": (
        "llvm.store", "vector.store", "vector.maskedstore", "llvm.intr.masked.store", "vector.scatter",
        "llvm.intr.masked.scatter",
    ),
    "rearrange": (
        "vector.shuffle", "vector.extract", "vector.insert", "vector.broadcast", "vector.interleave",
        "vector.reduction", "vector.transpose", "vector.from_elements",
    ),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _OF_KINDS.items() for name in names}
"""The kinds of vector operations; all others are simple, or special if they are functions."""

Work = Counter[str]
"""Operations by kind; or bytes of them: as many as the vector unit's are one instruction."""


def count_work(module: Any, chip: ChipDescription) -> None:
    """Add the calls to a module of loops, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        counting = _Counting(chip.vector.bytes)
        for operation in module.body.operations:
            if operation.operation.name == "llvm.func" and operation.regions[0].blocks:
                counting.block(operation.regions[0].blocks[0])
        if counting.used:
            declaration = f"module {{ llvm.func @{_ROUTINE}(i32, i64) }}"
            source = ir.Module.parse(declaration)
            source.body.operations[0].operation.clone(ip=ir.InsertionPoint.at_block_begin(module.body))


class _Counting:
    def __init__(self, width: int) -> None:
        self._width = width
        self._i32 = ir.IntegerType.get_signless(32)
        self._i64 = ir.IntegerType.get_signless(64)
        self.used = False
        self._telling: dict[Any, bool] = {}

    def _tells(self, operation: Any) -> bool:
        """Whether an operation is or contains an intrinsic that takes time: the announcements do not."""
        if operation.name == "llvm.call":
            callee = str(operation.attributes["callee"])
            return PREFIX in callee and not callee.endswith(_ANNOUNCEMENTS)
        if not len(operation.regions):
            return False
        found = self._telling.get(operation)
        if found is None:
            inside = (inner.operation for r in operation.regions for b in r.blocks for inner in b.operations)
            found = self._telling[operation] = any(map(self._tells, inside))
        return found

    def block(self, block: Any) -> Work:
        """Count a block. Returns the bytes of one execution that no call tells yet."""
        own: Work = Counter()
        widest = 0
        pending: Work = Counter()
        operations = [operation.operation for operation in block.operations]
        tells = any(self._tells(operation) for operation in operations)

        def settle() -> None:
            scale = min(widest, self._width) if widest else self._width
            for kind, count in own.items():
                pending[kind] += count * scale
            own.clear()

        functions: set[str] = set()
        for operation in operations:
            if tells and (self._tells(operation) or operation == operations[-1]):
                settle()
                self._tell(ir.InsertionPoint(operation), pending)
                pending.clear()
            pending.update(self._nested(operation))
            kind, width = _kind(operation)
            function = _function(operation) if width else ""
            if function:
                kind = "" if function in functions else "special"
                functions.add(function)
            if kind in ("load", "store") and width:
                pending[kind] += min(width, self._width)
            elif kind:
                own[kind] += 1
                widest = max(widest, width)
        settle()
        return pending

    def _nested(self, operation: Any) -> Mapping[str, int]:
        """The work of an operation's regions that is told outside of them."""
        if not len(operation.regions) or operation.name == "llvm.func":
            return {}
        found = [(block, self.block(block)) for region in operation.regions for block in region.blocks]
        if operation.name != "scf.for":
            for block, work in found:
                self._tell(ir.InsertionPoint(block.operations[len(block.operations) - 1]), work)
            return {}
        ((_, work),) = found
        start, stop, step = (_number(value) for value in list(operation.operands)[:3])
        if start is not None and stop is not None and step:
            iterations = max(0, -(-(stop - start) // step))
            return {kind: count * iterations for kind, count in work.items()}
        self._tell_loop(operation, work)
        return {}

    def _tell_loop(self, loop: Any, work: Mapping[str, int]) -> None:
        """Tell the work of a loop before it, by the number of its iterations."""
        if not any(work.values()):
            return
        place = ir.InsertionPoint(loop)
        start, stop, step = list(loop.operands)[:3]

        def make(name: str, *operands: Any) -> Any:
            return ir.Operation.create(name, results=[self._i64], operands=list(operands), ip=place).results[
                0
            ]

        if start.type != self._i64:
            start, stop, step = (
                ir.Operation.create("arith.extsi", results=[self._i64], operands=[value], ip=place).results[0]
                for value in (start, stop, step)
            )
        iterations = make("arith.ceildivsi", make("arith.subi", stop, start), step)
        iterations = make("arith.maxsi", iterations, self._constant(place, 0))
        for kind, count in work.items():
            parts = -(-count * 1024 // self._width)
            scaled = make("arith.muli", iterations, self._constant(place, int(parts)))
            self._call(place, kind, make("arith.ceildivsi", scaled, self._constant(place, 1024)))

    def _tell(self, place: Any, work: Mapping[str, int]) -> None:
        for kind, count in work.items():
            if count:
                self._call(place, kind, self._constant(place, -(-count // self._width)))

    def _constant(self, place: Any, value: int) -> Any:
        attribute = ir.IntegerAttr.get(self._i64, int(value))
        return ir.Operation.create(
            "arith.constant", results=[self._i64], attributes={"value": attribute}, ip=place
        ).results[0]

    def _call(self, place: Any, kind: str, count: Any) -> None:
        self.used = True
        number = ir.IntegerAttr.get(self._i32, KINDS[kind])
        which = ir.Operation.create(
            "arith.constant", results=[self._i32], attributes={"value": number}, ip=place
        ).results[0]
        ir.Operation.create(
            "llvm.call",
            operands=[which, count],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(_ROUTINE),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
            ip=place,
        )


def _kind(operation: Any) -> tuple[str, int]:
    """The kind of an operation, empty if it is free, and the bytes of its vectors; 0 for scalars."""
    name = operation.name
    if name in _FREE or len(operation.regions) or _is_offset(operation) or _is_contracted(operation):
        return "", 0
    if name == "llvm.call" and PREFIX in str(operation.attributes["callee"]):
        return "", 0  # the chip counts what issuing a command takes
    widths = [_bytes(value.type) for value in (*operation.operands, *operation.results)]
    width = max(widths, default=0)
    if not width:
        return "scalar", 0
    if name == "llvm.call" or (name.startswith("math.") and name not in _KINDS and name != "math.absf"):
        return "special", width
    return _KINDS.get(name, "simple"), width


def _is_offset(operation: Any) -> bool:
    """Whether an operation adds a constant to an index for addresses alone."""
    if operation.name != "arith.addi" or isinstance(operation.results[0].type, ir.VectorType):
        return False
    if not all(use.owner.name == "llvm.getelementptr" for use in operation.results[0].uses):
        return False
    return any(_number(value) is not None for value in operation.operands)


def _is_contracted(operation: Any) -> bool:
    """Whether a sum is computed with the product that it adds or subtracts."""
    if operation.name not in ("arith.addf", "arith.subf") or not _may_contract(operation):
        return False
    for value in operation.operands:
        owner = value.owner
        if getattr(owner, "name", "") == "arith.mulf" and _may_contract(owner) and len(list(value.uses)) == 1:
            return True
    return False


def _may_contract(operation: Any) -> bool:
    return "fastmath" in operation.attributes and "contract" in str(operation.attributes["fastmath"])


def _function(operation: Any) -> str:
    """The name of the expanded function that an operation is a part of; empty if it is of none."""
    found = _FUNCTION.search(str(operation.location))
    return found[0] if found else ""


_WIDTHS: dict[str, int] = {}


def _bytes(kind: Any) -> int:
    """Bytes of a vector; 0 for other types."""
    if not isinstance(kind, ir.VectorType):
        return 0
    text = str(kind)
    known = _WIDTHS.get(text)
    if known is None:
        found = _VECTOR.match(text)
        bits = int(found[3]) if found and found[3] else 64
        known = _WIDTHS[text] = int(found[1]) * max(8, bits) // 8 if found else 0
    return known


def _number(value: Any) -> int | None:
    """The integer that a scalar is known to be."""
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    return int(owner.attributes["value"].value)

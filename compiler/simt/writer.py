"""Writing operations into a parsed module of loops."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import mlir


class Writer:
    """Creates operations before others, with their locations."""

    def __init__(self) -> None:
        self._place: Any = None
        self._location: Any = None

    def before(self, operation: Any) -> Writer:
        """Write before an operation from now on."""
        self._place, self._location = mlir.ir.InsertionPoint(operation), operation.location
        return self

    def make(
        self,
        name: str,
        operands: tuple[Any, ...] = (),
        types: tuple[Any, ...] = (),
        regions: int = 0,
        **attributes: Any,
    ) -> Any:
        """Create an operation here."""
        created = mlir.ir.Operation.create(
            name, list(types), list(operands), attributes, regions=regions, ip=self._place, loc=self._location
        )
        return created

    def integer(self, value: int, bits: int = 64) -> Any:
        """A constant."""
        type = mlir.ir.IntegerType.get_signless(bits)
        return self.make("arith.constant", types=(type,), value=mlir.ir.IntegerAttr.get(type, value)).result

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """An operation of two operands of one type."""
        return self.make(name, (a, b), (a.type,)).result

    def equal(self, a: Any, b: Any) -> Any:
        """Whether two integers are equal."""
        bit, kind = mlir.ir.IntegerType.get_signless(1), mlir.ir.IntegerType.get_signless(64)
        return self.make("arith.cmpi", (a, b), (bit,), predicate=mlir.ir.IntegerAttr.get(kind, 0)).result

    def call(self, routine: str, *types: Any) -> Any:
        """A call of a routine without arguments."""
        segments = mlir.ir.DenseI32ArrayAttr.get([0, 0])
        return self.make(
            "llvm.call",
            types=types,
            callee=mlir.ir.FlatSymbolRefAttr.get(routine),
            operandSegmentSizes=segments,
            op_bundle_sizes=mlir.ir.DenseI32ArrayAttr.get([]),
        )

    def within(self, condition: Any) -> Any:
        """Create a condition here. Returns the end of its block: an operation to write before, or to move others to."""
        holder = self.make("scf.if", (condition,), regions=2)
        with self._location:
            return mlir.ir.Operation.create(
                "scf.yield", ip=mlir.ir.InsertionPoint(holder.regions[0].blocks.append())
            )

    def address(self, base: Any, offset: int) -> Any:
        """The address of a byte behind a pointer."""
        indices = mlir.ir.DenseI32ArrayAttr.get([offset])
        byte = mlir.ir.TypeAttr.get(mlir.ir.IntegerType.get_signless(8))
        return self.make(
            "llvm.getelementptr", (base,), (base.type,), rawConstantIndices=indices, elem_type=byte
        ).result

    def store(self, value: Any, place: Any) -> None:
        """Store a value; booleans as bytes."""
        if (stored := _stored(value.type)) != value.type:
            value = self.make("arith.extui", (value,), (stored,)).result
        self.make("llvm.store", (value, place))

    def load(self, place: Any, type: Any) -> Any:
        """Load what `store` has stored."""
        stored = _stored(type)
        value = self.make("llvm.load", (place,), (stored,)).result
        return value if stored == type else self.make("arith.trunci", (value,), (type,)).result


def _stored(type: Any) -> Any:
    """The type that a value has in memory."""
    ir = mlir.ir
    bit, byte = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(8)
    if type == bit:
        return byte
    if isinstance(type, ir.VectorType) and type.element_type == bit:
        return ir.VectorType.get(type.shape, byte)
    return type

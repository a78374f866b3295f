"""Changes the structured form of a kernel to compute in float64, exactly or with simulated random roundings.

Memory keeps its types: values are extended when loaded and rounded when stored. In between, all arithmetic on fp16,
bf16 and fp32 is done in float64, including conversions between these types. An operation without a float64 counterpart
is computed in its own types.

The new kernel has three additional parameters. With `amount` 0 it gives the float64 results. With 1, every value that
the original kernel would round is perturbed by up to a few units of its type, at random by `seed`; sums are perturbed
by the error of adding their terms in any order, and stored values by half a unit in `direction` (1 or -1). Values that
are exact in their type are not perturbed, so a kernel that only moves numbers or computes with whole numbers always
gives the same results. The distance of the perturbed results from the float64 results is the distance that a correct
backend may have.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compare.rounding_rules import (
    DIVISIONS,
    EIGHT_BITS,
    EXACT,
    FUNCTION_UNITS,
    PRECISIONS,
    ROUNDED_ONCE,
    SCATTERED,
    SHIFTS,
    TO_INTEGER,
    is_partial,
    kind_of,
)
from triton_porting_kit.compare.roundings import FORMATS, Roundings, float_of, is_tensor
from triton_porting_kit.compiler.dialect.operations import AtomicRmw
from triton_porting_kit.compiler.dialect.registry import OPERATIONS
from triton_porting_kit.conformance.tolerances import lost
from triton_porting_kit.toolchain.mlir import ir

EXTRA = ("f64", "f64", "i64")
"""The types of the parameters `amount`, `direction` and `seed`."""


class CannotWiden(Exception):
    """A kernel has no float64 version. The message says why."""


def widen(module: Any, contributions: int) -> None:
    """Change the only kernel of a structured module in place to compute in float64.

    `contributions`: the number of programs that may add to one element atomically. Raises `CannotWiden`.
    """
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise CannotWiden("it calls functions that are not inlined")
    with module.context, ir.Location.unknown():
        _Widening(functions[0], contributions).run()


class _Widening(Roundings):
    def __init__(self, function: Any, contributions: int) -> None:
        super().__init__()
        self._function = function
        self._contributions = contributions
        self._wide: dict[Any, Any] = {}

    def run(self) -> None:
        function = self._function.operation
        (old,) = function.regions[0].blocks
        kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        extra = [self._f64, self._f64, self._i64]
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([*kind.inputs, *extra], list(kind.results))
        )
        if "arg_attrs" in function.attributes:
            known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
            function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, *[ir.DictAttr.get({})] * len(extra)])
        self._amount, self._direction, self._seed = (
            old.add_argument(kind, ir.Location.unknown()) for kind in extra
        )
        body = list(old.operations)
        # The new operations are inserted before the old ones, which are then erased, the last one first.
        self._at = ir.InsertionPoint(body[0])
        for argument in list(old.arguments)[: -len(extra)]:
            self._define(argument, self._extended(argument))
        for operation in body[:-1]:
            self._operation(operation.operation)
        for operation in reversed(body[:-1]):
            operation.operation.erase()

    # --- values ------------------------------------------------------------------------------------------

    def _define(self, old: Any, new: Any) -> None:
        self._wide[old] = new

    def _of(self, old: Any) -> Any:
        return self._wide[old]

    def _own(self, old: Any) -> Any:
        """A value in its own type."""
        value = self._wide[old]
        return self._narrowed(value, old.type) if value.type != old.type else value

    def _extended(self, value: Any) -> Any:
        kind = self._wide_type(value.type)
        return value if kind == value.type else self._op("arith.extf", [value], [kind])[0]

    def _wide_type(self, kind: Any) -> Any:
        if float_of(kind) in (None, "f64"):
            return kind
        return ir.RankedTensorType.get(kind.shape, self._f64) if is_tensor(kind) else self._f64

    # --- operations --------------------------------------------------------------------------------------

    def _operation(self, op: Any) -> None:
        self._location = op.location
        name = op.name
        if name == "tpk.print":
            return
        if name == "arith.constant" and float_of(op.results[0].type):
            self._constant(op)
        elif name in ("arith.extf", "arith.truncf") and all(
            float_of(value.type) for value in (op.operands[0], op.results[0])
        ):
            self._conversion(op)
        elif name in ("linalg.matmul", "linalg.batch_matmul") and float_of(op.results[0].type):
            self._product(op)
        elif name in ("tpk.reduce", "tpk.scan") and any(float_of(result.type) for result in op.results):
            self._combination(op)
        elif is_partial(op):
            self._partial(op)
        elif name in EXACT and self._has_floats(op):
            self._counterpart(op)
        elif (name in ROUNDED_ONCE or name in DIVISIONS) and self._has_floats(op):
            self._counterpart(op)
            self._round(op, DIVISIONS.get(name, 1), exact_stays=name in ROUNDED_ONCE)
        elif name.startswith("math.") and float_of(op.results[0].type):
            self._counterpart(op, rounded=True)
            self._round(op, FUNCTION_UNITS)
        elif name in SCATTERED or name == "tpk.atomic_rmw":
            self._write(op)
        else:
            self._as_it_is(op)
            if name in ("tpk.function", "tpk.map"):
                self._round(op, FUNCTION_UNITS)

    def _has_floats(self, op: Any) -> bool:
        regions = any(float_of(a.type) for r in op.regions for b in r.blocks for a in b.arguments)
        return (
            regions
            or any(float_of(value.type) for value in (*op.operands, *op.results))
            or len(op.regions) > 0
        )

    def _counterpart(self, op: Any, rounded: bool = False) -> None:
        """The same operation on float64. `rounded`: perturb the operands by a unit."""
        operands = [self._of(value) for value in op.operands]
        if rounded:
            operands = [
                self._moved(new, float_of(old.type), 1) if float_of(old.type) else new
                for old, new in zip(op.operands, operands, strict=True)
            ]
        kinds = [self._wide_type(result.type) for result in op.results]
        attributes = {key: op.attributes[key] for key in op.attributes if key != "roundingmode"}
        created = ir.Operation.create(
            op.name,
            results=kinds,
            operands=operands,
            attributes=attributes,
            regions=len(op.regions),
            loc=op.location,
            ip=self._at,
        )
        for old, new in zip(op.regions, created.regions, strict=True):
            self._region(old, new)
        for old, new in zip(op.results, created.results, strict=True):
            self._define(old, new)

    def _region(self, old: Any, new: Any) -> None:
        outer = self._at
        for block in old.blocks:
            kinds = [self._wide_type(argument.type) for argument in block.arguments]
            made = new.blocks.append(*kinds, arg_locs=[ir.Location.unknown()] * len(kinds))
            for argument, value in zip(block.arguments, made.arguments, strict=True):
                self._define(argument, value)
            self._at = ir.InsertionPoint(made)
            for operation in block.operations:
                self._operation(operation.operation)
        self._at = outer

    def _as_it_is(self, op: Any) -> None:
        """Keep an operation in its own types."""
        operands = [self._own(value) for value in op.operands]
        created = op.clone(self._at)
        for index, value in enumerate(operands):
            created.operands[index] = value
        self._rebind(created)
        for old, new in zip(op.results, created.results, strict=True):
            self._define(old, self._extended(new))

    def _rebind(self, created: Any) -> None:
        """Make the regions of a clone use outer values in their own types."""
        for region in created.regions:
            for block in region.blocks:
                for operation in block.operations:
                    for index, value in enumerate(operation.operands):
                        if value in self._wide:
                            outer, self._at = self._at, ir.InsertionPoint(created)
                            operation.operands[index] = self._own(value)
                            self._at = outer
                    self._rebind(operation.operation)

    def _partial(self, op: Any) -> None:
        """An operation with an undefined result for some operands: for these, a random result in each run."""
        wide = op.name in TO_INTEGER and float_of(op.operands[0].type) is not None
        if wide:
            self._counterpart(op)
        else:
            self._as_it_is(op)
        if self._amount is None or (op.name in TO_INTEGER and not wide):
            return
        operands = [self._of(value) for value in op.operands]
        result = self._of(op.results[0])
        i1 = ir.IntegerType.get_signless(1)
        flag = ir.RankedTensorType.get(result.type.shape, i1) if is_tensor(result.type) else i1
        element = result.type.element_type if is_tensor(result.type) else result.type

        def compared(name: str, a: Any, b: Any, predicate: int) -> Any:
            return self._op(name, [a, b], [flag], predicate=ir.IntegerAttr.get(self._i64, predicate))[0]

        def integer(value: int) -> Any:
            attribute = ir.IntegerAttr.get(element, value)
            return self._like(self._op("arith.constant", [], [element], value=attribute)[0], result)

        if wide:
            signed = op.name == "arith.fptosi"
            low, high = (
                (-(2.0 ** (element.width - 1)), 2.0 ** (element.width - 1))
                if signed
                else (0.0, 2.0**element.width)
            )
            above, below = (
                compared("arith.cmpf", operands[0], self._number_like(operands[0], bound), predicate)
                for bound, predicate in ((low - 1, 2), (high, 4))  # ogt, olt
            )
            fine = self._op("arith.andi", [above, below], [flag])[0]
        elif op.name in SHIFTS:
            fine = compared("arith.cmpi", operands[1], integer(element.width), 6)  # ult
        else:
            fine = compared("arith.cmpi", operands[1], integer(0), 1)  # ne
            if element.width > 1 and not op.name.endswith("ui"):
                least, minus = integer(-(1 << (element.width - 1))), integer(-1)
                other = [
                    compared("arith.cmpi", operands[0], least, 1),
                    compared("arith.cmpi", operands[1], minus, 1),
                ]
                fine = self._op("arith.andi", [fine, self._op("arith.ori", other, [flag])[0]], [flag])[0]
        number = self._op(
            "arith.muli", [self._seed, self._integer(2 * next(self._numbers) + 1)], [self._i64]
        )[0]
        shift = self._integer(64 - element.width)
        number = self._op("arith.shrui", [number, shift], [self._i64])[0] if element.width < 64 else number
        if element.width < 64:
            number = self._op("arith.trunci", [number], [element])[0]
        zero = self._number(0.0)
        plain = self._op(
            "arith.cmpf", [self._amount, zero], [i1], predicate=ir.IntegerAttr.get(self._i64, 1)
        )[0]
        fine = self._op("arith.ori", [fine, self._like(plain, result)], [flag])[0]
        chosen = self._op("arith.select", [fine, result, self._like(number, result)], [result.type])[0]
        self._define(op.results[0], chosen)

    def _constant(self, op: Any) -> None:
        kind, attribute = op.results[0].type, op.attributes["value"]
        wide = self._wide_type(kind)
        if wide == kind:
            self._as_it_is(op)
        elif not is_tensor(kind):
            self._define(op.results[0], self._number(ir.FloatAttr(attribute).value))
        else:
            dense = ir.DenseFPElementsAttr(attribute)
            if not dense.is_splat:
                self._as_it_is(op)
                return
            value = ir.FloatAttr(dense.get_splat_value()).value
            self._define(op.results[0], self._number(value, kind.shape))

    def _conversion(self, op: Any) -> None:
        """A conversion between types that are now float64: only its rounding remains."""
        self._define(op.results[0], self._of(op.operands[0]))
        if op.name == "arith.truncf":
            self._round(op, 2 if "roundingmode" in op.attributes else 1, exact_stays=True)

    def _product(self, op: Any) -> None:
        a, b, c = op.operands
        acc = float_of(c.type)
        assert acc is not None
        left, right = (self._operand(value) for value in (a, b))
        result = self._matmul(op.name, left, right, self._of(c))
        shape = list(c.type.shape)
        terms = int(a.type.shape[-1])
        magnitudes = [self._op("math.absf", [value], [value.type])[0] for value in (left, right)]
        scale = self._matmul(op.name, magnitudes[0], magnitudes[1], self._number(0.0, shape))
        roundings = (2 + lost(terms)) * 2.0 ** -FORMATS[acc].precision
        precision = ir.StringAttr(op.attributes["tpk.input_precision"]).value
        if {float_of(a.type), float_of(b.type)} == {"f32"} and precision in PRECISIONS:
            count, bits = PRECISIONS[precision]
            roundings += count * 2.0**-bits
        elif None in (float_of(a.type), float_of(b.type)):
            count, bits = EIGHT_BITS
            roundings += (count + lost(terms) / 4) * 2.0**-bits
        result = self._spread(result, scale, roundings)
        self._define(op.results[0], self._moved(result, acc, 1, exact_stays=True))

    def _operand(self, value: Any) -> Any:
        """An operand of a product in float64, also if it has an 8-bit float type."""
        if float_of(value.type) is not None:
            return self._of(value)
        wide = self._op("arith.extf", [value if value not in self._wide else self._of(value)],
                        [ir.RankedTensorType.get(value.type.shape, ir.F32Type.get())])[0]  # fmt: skip
        return self._extended(wide)

    def _matmul(self, name: str, a: Any, b: Any, c: Any) -> Any:
        created = self._op(
            name, [a, b, c], [c.type], regions=1,
            **{"operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
               "tpk.input_precision": ir.StringAttr.get("ieee")},
        )  # fmt: skip
        block = created.regions[0].blocks.append(*[self._f64] * 3, arg_locs=[self._location] * 3)
        outer, self._at = self._at, ir.InsertionPoint(block)
        x, y, z = block.arguments
        product = self._op("arith.mulf", [x, y], [self._f64])[0]
        self._op("linalg.yield", [self._op("arith.addf", [z, product], [self._f64])[0]], [])
        self._at = outer
        return created.results[0]

    def _combination(self, op: Any) -> None:
        """A reduction or a scan: its region in float64, and the error of its combinations."""
        inside = {
            inner.operation.name
            for region in op.regions
            for block in region.blocks
            for inner in block.operations
        }
        sums = inside == {"arith.addf", "tpk.yield"}
        exact = inside <= EXACT
        before, self._amount = self._amount, None  # The region is computed without roundings.
        self._counterpart(op)
        self._amount = before
        self._location = op.location
        if exact:
            return
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        terms = int(op.operands[0].type.shape[axis])
        results = [self._of(result) for result in op.results]
        scales = results
        if sums:
            scales = self._sums_of_magnitudes(op)
        for old, new, scale in zip(op.results, results, scales, strict=True):
            kind = float_of(old.type)
            if kind is not None:
                units = lost(terms) + 1 + (0 if sums else FUNCTION_UNITS)
                moved = self._spread(new, scale, units * 2.0 ** -FORMATS[kind].precision)
                self._define(old, moved)

    def _sums_of_magnitudes(self, op: Any) -> list[Any]:
        operands = [self._of(value) for value in op.operands]
        magnitudes = [self._op("math.absf", [value], [value.type])[0] for value in operands]
        attributes = {key: op.attributes[key] for key in op.attributes}
        kinds = [self._wide_type(result.type) for result in op.results]
        created = self._op(op.name, magnitudes, kinds, regions=1, **attributes)
        before, self._amount = self._amount, None
        self._region(op.regions[0], created.regions[0])
        self._amount = before
        return list(created.results)

    def _write(self, op: Any) -> None:
        """A store rounds its value in one direction. An atomic addition also gets the error of all additions."""
        added = AtomicRmw.isa(op)
        number = OPERATIONS[op.name](op).position("value")
        value = op.operands[number]
        kind = float_of(value.type)
        operands = [self._own(operand) if i != number else None for i, operand in enumerate(op.operands)]
        if kind is None or (added and kind_of(op) != "fadd"):
            operands[number] = self._own(value)
        else:
            wide = self._of(value)
            units = (1 + lost(self._contributions)) if added else 1.0
            moved = self._directed(wide, kind, units, exact_stays=not added)
            operands[number] = moved if moved.type == value.type else self._narrowed(moved, value.type)
        attributes = {key: op.attributes[key] for key in op.attributes}
        created = self._op(op.name, operands, [result.type for result in op.results], **attributes)
        for old, new in zip(op.results, created, strict=True):
            self._define(old, self._extended(new))

    def _round(self, op: Any, units: float, exact_stays: bool = False) -> None:
        for result in op.results:
            kind = float_of(result.type)
            if kind is not None:
                self._define(result, self._moved(self._of(result), kind, units, exact_stays=exact_stays))

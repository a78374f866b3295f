"""Random TTIR kernels (in generic text) whose addresses and masks are put together in many ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from hypothesis import strategies as st

SCALARS = ("%m", "%n", "%s")
_SIGNED = (0, 1, 2, 3, 4, 5)
_UNSIGNED = (6, 7, 8, 9)


@dataclass
class Tensor:
    """An SSA name with its shape; `element` is the element type."""

    name: str
    shape: tuple[int, ...]
    element: str = "i32"

    @property
    def type(self) -> str:
        return "tensor<" + "".join(f"{n}x" for n in self.shape) + self.element + ">"


POINTER = "!tt.ptr<i32>"


@dataclass
class Writer:
    """Writes operations; `draw` makes the random choices."""

    draw: st.DrawFn
    nonnegative: bool = False
    """All scalars are at least 0, so unsigned operations may appear."""
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def choose(self, *options):
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def op(self, name: str, operands: str, attributes: str, inputs: str, result: str) -> str:
        self.count += 1
        properties = f" <{{{attributes}}}>" if attributes else ""
        self.lines.append(f'%v{self.count} = "{name}"({operands}){properties} : ({inputs}) -> {result}')
        return f"%v{self.count}"

    def constant(self, value: int) -> str:
        return self.op("arith.constant", "", f"value = {value} : i32", "", "i32")

    def scalar(self) -> str:
        """A scalar i32: an argument, the program id, a constant or a sum."""
        kind = self.number(0, 5)
        if kind <= 2:
            return SCALARS[kind]
        if kind == 3:
            return self.op("tt.get_program_id", "", "axis = 0 : i32", "", "i32")
        if kind == 4:
            return self.constant(self.number(0 if self.nonnegative else -3, 9))
        return self.binary_scalar(self.choose("addi", "muli"), self.choose(*SCALARS), self.choose(*SCALARS))

    def binary_scalar(self, name: str, a: str, b: str) -> str:
        return self.op(f"arith.{name}", f"{a}, {b}", "", "i32, i32", "i32")

    def splat(self, scalar: str, shape: tuple[int, ...], element: str = "i32") -> Tensor:
        result = Tensor("", shape, element)
        result.name = self.op("tt.splat", scalar, "", element, result.type)
        return result

    def binary(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        attributes = ""
        return Tensor(
            self.op(f"arith.{name}", f"{a.name}, {b.name}", attributes, f"{a.type}, {b.type}", a.type),
            a.shape,
            a.element,
        )

    def index(self, size: int, affine_only: bool = False) -> Tensor:
        """A 1-D index expression over a range."""
        start = self.number(0, 2)
        tensor = Tensor("", (size,))
        tensor.name = self.op(
            "tt.make_range", "", f"end = {start + size} : i32, start = {start} : i32", "", tensor.type
        )
        for _ in range(self.number(0, 3)):
            step = self.number(0, 4 if affine_only else 6)
            if step == 0:
                tensor = self.binary("addi", tensor, self.splat(self.scalar(), (size,)))
            elif step == 1:
                tensor = self.binary("addi", self.splat(self.scalar(), (size,)), tensor)
            elif step == 2:
                name = "addi" if self.nonnegative else "subi"
                tensor = self.binary(name, tensor, self.splat(self.scalar(), (size,)))
            elif step == 3:
                tensor = self.binary("muli", tensor, self.splat(self.scalar(), (size,)))
            elif step == 4:
                limit = self.choose("%m", "%n", self.constant(self.number(1, 12)))
                name = "remui" if self.nonnegative and self.choose(True, False) else "remsi"
                tensor = self.binary(name, tensor, self.splat(limit, (size,)))
            elif step == 5:
                tensor = self.binary("divsi", tensor, self.splat(self.constant(self.number(1, 3)), (size,)))
            else:
                tensor = self.binary("addi", tensor, tensor)
        return tensor

    def placed(self, tensor: Tensor, dimension: int, shape: tuple[int, ...]) -> Tensor:
        """A 1-D tensor along one dimension of `shape`, the others of size 1."""
        for d in range(len(shape)):
            if d != dimension:
                grown = Tensor("", (*tensor.shape[:d], 1, *tensor.shape[d:]), tensor.element)
                grown.name = self.op(
                    "tt.expand_dims", tensor.name, f"axis = {d} : i32", tensor.type, grown.type
                )
                tensor = grown
        return tensor

    def broadcast(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        if tensor.shape == shape:
            return tensor
        result = Tensor("", shape, tensor.element)
        result.name = self.op("tt.broadcast", tensor.name, "", tensor.type, result.type)
        return result

    def addptr(self, pointer: Tensor, offset: Tensor) -> Tensor:
        both = f"{pointer.name}, {offset.name}"
        kinds = f"{pointer.type}, {offset.type}"
        return Tensor(self.op("tt.addptr", both, "", kinds, pointer.type), pointer.shape, POINTER)

    def full_index(self, shape: tuple[int, ...], affine_only: bool = False) -> Tensor:
        """An index expression of the full shape: a sum over the dimensions."""
        parts = [
            self.broadcast(self.placed(self.index(size, affine_only), d, shape), shape)
            for d, size in enumerate(shape)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = self.binary("addi", total, part)
        return total

    def pointers(self, shape: tuple[int, ...], base: str = "%p") -> Tensor:
        """A tensor of pointers, its offset added in random association."""
        if self.choose(True, False):
            base = self.op("tt.addptr", f"{base}, {self.scalar()}", "", f"{POINTER}, i32", POINTER)
        if len(shape) == 1 or self.choose(True, False):
            return self.addptr(self.splat(base, shape, POINTER), self.full_index(shape))
        first = self.placed(self.index(shape[0]), 0, shape)
        pointer = self.addptr(self.splat(base, first.shape, POINTER), first)
        pointer = self.broadcast(pointer, shape)
        for d in range(1, len(shape)):
            part = self.broadcast(self.placed(self.index(shape[d]), d, shape), shape)
            pointer = self.addptr(pointer, part)
        return pointer

    def comparison(self, tensor: Tensor) -> Tensor:
        limit = self.splat(self.scalar(), tensor.shape)
        result = Tensor("", tensor.shape, "i1")
        result.name = self.op(
            "arith.cmpi",
            f"{tensor.name}, {limit.name}" if self.choose(True, False) else f"{limit.name}, {tensor.name}",
            f"predicate = {self.choose(*_SIGNED, *(_UNSIGNED if self.nonnegative else ()))} : i64",
            f"{tensor.type}, {tensor.type}",
            result.type,
        )
        return result

    def mask(self, shape: tuple[int, ...]) -> Tensor:
        """A conjunction (sometimes a disjunction) of conditions on single dimensions or the whole tile."""
        total: Tensor | None = None
        for _ in range(self.number(1, 3)):
            kind = self.number(0, 5)
            if kind <= 3:
                d = self.number(0, len(shape) - 1)
                part = self.broadcast(self.comparison(self.placed(self.index(shape[d]), d, shape)), shape)
            elif kind == 4:
                part = self.comparison(self.full_index(shape))
            else:
                condition = self.op(
                    "arith.cmpi", f"{self.scalar()}, %s", "predicate = 2 : i64", "i32, i32", "i1"
                )
                part = self.splat(condition, shape, "i1")
            total = part if total is None else self.binary(self.choose("andi", "andi", "ori"), total, part)
        assert total is not None
        return total

    def access(self, pointer: Tensor) -> None:
        """A masked load from `pointer` and a masked store of what was loaded."""
        value = Tensor("", pointer.shape)
        pointer = self.view(pointer)
        mask, other = self.mask(pointer.shape), self.splat(self.scalar(), pointer.shape)
        value.name = self.op(
            "tt.load",
            f"{pointer.name}, {mask.name}, {other.name}",
            "isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>",
            f"{pointer.type}, {mask.type}, {other.type}",
            value.type,
        )
        target = self.pointers(pointer.shape, "%q")
        self.lines.append(
            f'"tt.store"({target.name}, {value.name}, {mask.name}) : '
            f"({target.type}, {value.type}, {mask.type}) -> ()"
        )

    def view(self, tensor: Tensor) -> Tensor:
        """The tensor, sometimes transposed or in another shape."""
        kind = self.number(0, 5)
        rank = len(tensor.shape)
        if kind == 0 and rank > 1:
            order = self.draw(st.permutations(range(rank)))
            result = Tensor("", tuple(tensor.shape[o] for o in order), tensor.element)
            attributes = f"order = array<i32: {', '.join(map(str, order))}>"
            result.name = self.op("tt.trans", tensor.name, attributes, tensor.type, result.type)
            return result
        if kind == 1:
            flat = prod(tensor.shape)
            shapes = [(flat,), (1, flat), (flat, 1), (1, *tensor.shape), (*tensor.shape[:1], 1, *tensor.shape[1:])]
            result = Tensor("", self.choose(*shapes), tensor.element)
            result.name = self.op("tt.reshape", tensor.name, "", tensor.type, result.type)
            return result
        return tensor

    def while_loop(self, shape: tuple[int, ...]) -> None:
        """A while loop that carries a counter, pointers and an index tensor, in changing order."""
        pointer, offsets = self.pointers(shape), self.full_index(shape, affine_only=True)
        kinds = f"i32, {pointer.type}, {offsets.type}"
        swapped = f"{offsets.type}, i32, {pointer.type}"
        zero = self.constant(0)
        outer, self.lines = self.lines, []
        limit = self.constant(3)
        condition = self.op("arith.cmpi", f"%c, {limit}", "predicate = 2 : i64", "i32, i32", "i1")
        forwarded = "%bp"
        if self.choose(True, False):
            forwarded = self.addptr(Tensor("%bp", shape, POINTER), self.splat("%m", shape)).name
        self.lines.append(f'"scf.condition"({condition}, %bi, %c, {forwarded}) : (i1, {swapped}) -> ()')
        before, self.lines = self.lines, []
        carried, index = Tensor("%ap", shape, POINTER), Tensor("%ai", shape)
        self.access(carried)
        one = self.constant(1)
        count = self.op("arith.addi", f"%ac, {one}", "", "i32, i32", "i32")
        moved = self.addptr(carried, self.choose(index, self.splat("%n", shape)))
        moved_index = self.binary("addi", index, self.splat(self.scalar(), shape))
        self.lines.append(f'"scf.yield"({count}, {moved.name}, {moved_index.name}) : ({kinds}) -> ()')
        after, self.lines = self.lines, outer
        self.lines += [
            f'%loop:3 = "scf.while"({zero}, {pointer.name}, {offsets.name}) ({{',
            f"^bb0(%c: i32, %bp: {pointer.type}, %bi: {offsets.type}):",
            *before,
            "}, {",
            f"^bb0(%ai: {offsets.type}, %ac: i32, %ap: {pointer.type}):",
            *after,
            f"}}) : ({kinds}) -> ({swapped})",
        ]
        self.access(Tensor("%loop#2", shape, POINTER))
        self.access(self.addptr(self.splat("%q", shape, POINTER), Tensor("%loop#0", shape)))

    def loop(self, shape: tuple[int, ...]) -> None:
        """A loop that carries pointers and an index tensor, and moves both in some way."""
        pointer, offsets = self.pointers(shape), self.full_index(shape, affine_only=True)
        zero, one, count = self.constant(0), self.constant(1), self.constant(3)
        outer, self.lines = self.lines, []
        carried, index = Tensor("%cp", shape, POINTER), Tensor("%ci", shape)
        self.access(carried)
        self.access(self.addptr(self.splat("%p", shape, POINTER), index))
        if self.choose(True, False):
            step = self.splat(self.choose(*SCALARS, "%i"), shape)
        else:
            step = self.full_index(shape)
        moved = self.addptr(carried, step)
        if self.choose(True, False, False):
            moved = self.pointers(shape, "%q")
        moved_index = self.binary("addi", index, self.choose(step, self.splat(self.scalar(), shape)))
        kinds = f"{pointer.type}, {offsets.type}"
        self.lines.append(f'"scf.yield"({moved.name}, {moved_index.name}) : ({kinds}) -> ()')
        body, self.lines = self.lines, outer
        self.lines += [
            f'%loop:2 = "scf.for"({zero}, {count}, {one}, {pointer.name}, {offsets.name}) ({{',
            f"^bb0(%i: i32, %cp: {pointer.type}, %ci: {offsets.type}):",
            *body,
            f"}}) : (i32, i32, i32, {kinds}) -> ({kinds})",
        ]
        self.access(Tensor("%loop#0", shape, POINTER))
        self.access(self.addptr(self.splat("%q", shape, POINTER), Tensor("%loop#1", shape)))

    def branch(self, shape: tuple[int, ...]) -> None:
        """Pointers that a branch chooses."""
        condition = self.op("arith.cmpi", "%m, %s", "predicate = 2 : i64", "i32, i32", "i1")
        if self.choose(True, False):
            common = self.pointers(shape)
            sides = [common, self.addptr(common, self.splat(self.scalar(), shape))]
        else:
            sides = [self.pointers(shape, self.choose("%p", "%q")) for _ in range(2)]
        kind = sides[0].type
        choice = self.number(0, 2)
        if choice == 2:
            mask = self.mask(shape)
            both = f"{mask.name}, {sides[0].name}, {sides[1].name}"
            name = self.op("arith.select", both, "", f"{mask.type}, {kind}, {kind}", kind)
            self.access(Tensor(name, shape, POINTER))
            return
        if choice == 1:
            both = f"{sides[0].name}, {sides[1].name}"
            name = self.op("arith.select", f"{condition}, {both}", "", f"i1, {kind}, {kind}", kind)
            self.access(Tensor(name, shape, POINTER))
            return
        self.lines.append(f'%chosen = "scf.if"({condition}) ({{')
        for side, end in zip(sides, ("}, {", f"}}) : (i1) -> {kind}"), strict=True):
            self.lines += [f'"scf.yield"({side.name}) : ({kind}) -> ()', end]
        self.access(Tensor("%chosen", shape, POINTER))


@st.composite
def kernels(draw: st.DrawFn) -> tuple[str, bool]:
    """A TTIR module with one kernel (pointers %p and %q, integers %m and %n > 0, %s); if %s must be >= 0."""
    writer = Writer(draw, draw(st.booleans()))
    shape = tuple(writer.choose(1, 2, 4, 8) for _ in range(writer.number(1, 3)))
    kind = writer.choose("plain", "loop", "while", "branch")
    if kind == "plain":
        writer.access(writer.pointers(shape))
    elif kind == "loop":
        writer.loop(shape)
    elif kind == "while":
        writer.while_loop(shape)
    else:
        writer.branch(shape)
    body = "\n    ".join(writer.lines)
    arguments = f"{POINTER}, {POINTER}, i32, i32, i32"
    text = f"""module {{
  "tt.func"() <{{function_type = ({arguments}) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%p: {POINTER}, %q: {POINTER}, %m: i32, %n: i32, %s: i32):
    {body}
    "tt.return"() : () -> ()
  }}) {{noinline = false}} : () -> ()
}}"""
    return text, writer.nonnegative

"""Where the rows of a program lie, and how blocks of them are loaded and stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Limits
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.moves import Undone, address, all_of, by, cast, let, literal
from triton_porting_kit.conformance.stress.program import Fetch, Put, Region

BLOCKS = (16, 32, 32, 64, 64, 128, 256, 512, 1024, 4096)
"""Numbers of columns that are loaded at a time."""
HEIGHTS = (1, 1, 1, 1, 2, 4, 8)
"""Numbers of rows that are loaded at a time; with 1, blocks have one dimension."""
MOST_BLOCKS = 4


@dataclass(frozen=True)
class Sizes:
    """A matrix, and the blocks in which a program goes through it."""

    kind: str
    """The type that is computed with."""
    height: int
    width: int
    rows: int
    columns: int
    stride: int
    """The number of elements from one row to the next."""
    persistent: bool
    """Whether a program of the grid loops over rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a block."""
        return (self.width,) if self.height == 1 else (self.height, self.width)

    @property
    def groups(self) -> int:
        """The number of groups of rows that are loaded at a time."""
        return -(-self.rows // self.height)

    @property
    def blocks(self) -> int:
        """The number of blocks of a row."""
        return -(-self.columns // self.width)


def sizes(draws: Draws, vocabulary: tuple[str, ...], limits: Limits) -> Sizes:
    """Random sizes within limits."""
    kind = draws.choose([k for k in ("fp32", "fp32", "fp32", "i32") if k in vocabulary])
    height = draws.choose(HEIGHTS)
    width = draws.choose([n for n in BLOCKS if n * height <= limits.largest])
    most = min(width * draws.choose((1, 1, 2, MOST_BLOCKS)), limits.span // (4 * height))
    columns = draws.between(1, most)
    columns = -(-columns // width) * width if draws.chance(0.4) else columns
    stride = draws.choose((columns, columns, columns + 3, columns + 16, -(-columns // 16) * 16))
    rows = draws.between(1, max(min(3 * height, (limits.span - 1) // stride - height), 1))
    return Sizes(kind, height, width, rows, columns, stride, draws.chance(0.35))


@dataclass(frozen=True)
class Band:
    """The rows that a program goes through at once."""

    sizes: Sizes
    ends: tuple[int, int]
    """The numbers of rows and of columns, as numbers of run time."""
    number: int
    """The number of the group of rows, a scalar."""
    rows: int
    """The number of the row, a scalar; of several rows, a column of numbers."""
    columns: int
    """The first columns, a line."""
    facts: list[int] = field(default_factory=list)
    """What earlier passes reduced each row to: scalars, or columns of numbers."""
    arrays: list[Region] = field(default_factory=list)
    """The matrices that were loaded."""

    @property
    def is_aligned(self) -> bool:
        """Whether tensor descriptors may describe the matrices: their rows begin at multiples of 16 bytes."""
        return self.sizes.stride % 16 == 0


def band(builder: Addresses, number: int, of: Sizes, ends: tuple[int, int]) -> Band:
    """The rows of a group."""
    rows = number
    if of.height > 1:
        line = let(builder, "tl.arange", start=0, size=of.height)
        line = let(builder, "+", line, literal(builder, number, "*", of.height))
        rows = let(builder, "[:, None]", line, axis=1)
    return Band(of, ends, number, rows, let(builder, "tl.arange", start=0, size=of.width))


def columns_from(builder: Addresses, of: Band, start: int | None) -> int:
    """The numbers of the columns of a block, a line or a row; `start`: the first one, None for 0."""
    line = of.columns if start is None else let(builder, "+", of.columns, start)
    return line if of.sizes.height == 1 else let(builder, "[:, None]", line, axis=0)


def inside(builder: Addresses, of: Band, columns: int, end: int | None = None) -> int | None:
    """The mask of a block. If no element is outside of the matrix, it may be None. `end`: the number of columns, if not
    the matrix's own."""
    draws, masks = builder.draws, []
    if end is not None or of.sizes.columns % of.sizes.width or draws.chance(0.5):
        masks.append(let(builder, "compare <", columns, of.ends[1] if end is None else end))
    if of.sizes.height > 1 and (of.sizes.rows % of.sizes.height or draws.chance(0.5)):
        masks.append(let(builder, "compare <", of.rows, of.ends[0]))
    return all_of(builder, masks)


def pointers_to(builder: Addresses, of: Band, columns: int, region: Region, moved: int = 0) -> int:
    """Pointers to the elements of a block in a matrix, or to those so many columns behind them."""
    rows = by(builder, of.rows, "*", of.sizes.stride)
    if builder.draws.chance(0.5):
        columns = _moved(builder, columns, moved)
        return address(builder, let(builder, "+", rows, columns), region)
    start = address(builder, rows, region)
    start = let(builder, "step", start, step=moved) if moved else start
    return let(builder, "advance", start, columns)


def _moved(builder: Addresses, columns: int, by: int) -> int:
    return literal(builder, columns, "+" if by > 0 else "-", abs(by)) if by else columns


def loaded(builder: Addresses, of: Band, start: int | None, region: Region) -> int:
    """A block of a matrix, in the computed type. A region that is not in `Band.arrays` has one row for all rows."""
    columns = columns_from(builder, of, start)
    if region in of.arrays and region.use == "load" and of.is_aligned and builder.draws.chance(0.3):
        return _fetched(builder, of, block_of(builder, of, start, region), None, 0)
    if region in of.arrays:
        pointers = pointers_to(builder, of, columns, region)
        return _fetched(builder, of, pointers, inside(builder, of, columns))
    mask = inside(builder, of, columns)
    if mask is not None:
        mask = let(builder, "compare <", columns, of.ends[1])
    return _fetched(builder, of, address(builder, columns, region), mask)


def beside(builder: Addresses, of: Band, start: int | None, region: Region, by: int) -> int:
    """The elements so many columns behind those of a block of a matrix, or before them."""
    columns = columns_from(builder, of, start)
    moved = _moved(builder, columns, by)
    mask = inside(builder, of, moved, of.ends[1])
    if by < 0:
        first = let(builder, "limit", moved, symbol=">=", literal=0)
        mask = first if mask is None else let(builder, "&", first, mask)
    return _fetched(builder, of, pointers_to(builder, of, columns, region, by), mask)


def halves(
    builder: Addresses, of: Band, start: int | None, region: Region
) -> tuple[int, int, list[int], int | None]:
    """The elements of a block in the first half of the columns, and those at the same places in the second half; the
    pointers of both, and the mask."""
    half = literal(builder, of.ends[1], "//", 2)
    first = columns_from(builder, of, start)
    mask = inside(builder, of, first, half)
    pointers = [
        pointers_to(builder, of, columns, region) for columns in (first, let(builder, "+", first, half))
    ]
    one, other = (_fetched(builder, of, pointer, mask) for pointer in pointers)
    return one, other, pointers, mask


def _fetched(builder: Addresses, of: Band, pointers: int, mask: int | None, other: int | None = None) -> int:
    value = builder.shared.value()
    other = builder.draws.choose((0, 0, 0, 1)) if other is None else other
    if not builder.add(Fetch(value, pointers, mask, other)):
        raise Undone
    return cast(builder, value, of.sizes.kind)


def block_of(builder: Addresses, of: Band, start: int | None, region: Region) -> int:
    """The block of a tensor descriptor of a matrix, or of the row."""
    own = of.sizes
    zero = let(builder, "tl.full", kind="i32", shape=(), value=0)
    first = zero if start is None else start
    sizes: tuple[int, ...] = of.ends[1:]
    at: tuple[int, ...] = (first,)
    if own.height == 1:
        base = address(builder, by(builder, of.rows, "*", own.stride), region)
    else:
        base = address(builder, zero, region)
        sizes, at = of.ends, (literal(builder, of.number, "*", own.height), first)
    strides = (own.stride, 1)[-len(at) :]
    return let(builder, "tl.make_tensor_descriptor", base, *sizes, *at, shape=own.shape, strides=strides)


def stored_alone(builder: Addresses, of: Band, start: int | None, value: int, region: Region) -> None:
    """Store a block of a matrix that nothing else accesses; sometimes by a tensor descriptor. Raises `Undone`."""
    described = of.is_aligned and builder.draws.chance(0.5)
    if not described or not builder.add(
        Put(block_of(builder, of, start, region), cast(builder, value, region.kind))
    ):
        stored(builder, of, start, value, region)


def stored(builder: Addresses, of: Band, start: int | None, value: int, region: Region, by: int = 0) -> None:
    """Store a block of a matrix, so many columns behind its own. Raises `Undone`."""
    columns = columns_from(builder, of, start)
    target = pointers_to(builder, of, columns, region, by)
    value = cast(builder, value, region.kind)
    if not builder.add(Put(target, value, inside(builder, of, columns))):
        raise Undone

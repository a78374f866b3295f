"""Loops around products: which of a kernel's loops do nothing but add products to one tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect import operations as tpk
from triton_porting_kit.toolchain.mlir import ir

PRODUCT = "linalg.matmul"
"""The operation of which nests are made."""
_INIT = 2
"""The position of a product's init among its operands."""
_ALLOWED = frozenset({PRODUCT, tpk.Load.OPERATION_NAME, "tensor.collapse_shape", "scf.yield"})
"""Operations of a nest beside those of scalars and its loops."""
MOST = 512
"""Products of a nest to look at."""


@dataclass(frozen=True)
class Counter:
    """A loop with constant bounds."""

    variable: Any
    start: int
    step: int
    iterations: int


@dataclass(frozen=True)
class Nest:
    """Loops, of which each only carries the sum of the products that its inner loop, or its body, adds."""

    products: list[Any]
    """In the body of the innermost loop, or in a block: each adds to the result of the one before."""
    loops: list[Any]
    """From the outermost to the innermost."""
    counters: list[Counter]
    """The loops among them with constant bounds."""
    others: list[Any]
    """The loops among them with other bounds, which are computed outside of all."""
    inside: frozenset[Any]
    """Values that are computed in the loops."""

    def sees(self, value: Any) -> bool:
        """Whether what a value is computed from may tell products apart: those of a chain, that of all values."""
        return len(self.products) > 1 or value in self.inside

    @property
    def place(self) -> Any:
        """The operation whose place the nest has."""
        return self.loops[0] if self.loops else self.products[-1]

    @property
    def instances(self) -> Iterator[tuple[Any, dict[Any, int]]]:
        """The products in the order of the program, with the values of the counters."""
        ranges = [
            [(c.variable, c.start + number * c.step) for number in range(c.iterations)] for c in self.counters
        ]
        for values in itertools.product(*ranges):
            for product in self.products:
                yield product, dict(values)


def nests(kernel: Any) -> list[Nest]:
    """The nests of a kernel with several products of which all are known when it is compiled."""
    found = []
    for last in _last_products(kernel):
        chain = _chain(last)
        nest = _nest(chain)
        if nest is None:
            continue
        count = len(chain)
        for counter in nest.counters:
            count *= counter.iterations
        if 1 < count <= MOST:
            found.append(nest)
    return found


def _last_products(kernel: Any) -> list[Any]:
    """Products to whose results no other product of the block adds."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == PRODUCT and _next(operation.operation) is None:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return found


def _only_use(value: Any) -> Any:
    uses = list(itertools.islice(value.uses, 2))
    return uses[0] if len(uses) == 1 else None


def _next(product: Any) -> Any:
    """The product that adds to the result of one, in its block."""
    use = _only_use(product.results[0])
    if use is None or use.operand_number != _INIT or use.owner.name != PRODUCT:
        return None
    other = use.owner.operation
    return other if other.block == product.block else None


def _chain(last: Any) -> list[Any]:
    chain = [last]
    while not isinstance(chain[0].operands[_INIT].owner, ir.Block):
        before = chain[0].operands[_INIT].owner.operation
        following = _next(before) if before.name == PRODUCT else None
        if following is None or following != chain[0]:
            break
        chain.insert(0, before)
    return chain


def _nest(chain: list[Any]) -> Nest | None:
    loops: list[Any] = []
    first, last = chain[0].operands[_INIT], chain[-1].results[0]
    while True:
        loop = chain[0].parent if not loops else loops[0].parent
        if loop is None or loop.name != "scf.for" or not _only_adds(loop.operation, first, last):
            break
        loops.insert(0, loop.operation)
        first, last = list(loop.operands)[3], loop.results[0]
    if not loops:
        if len(chain) == 1 or not _undisturbed(chain):
            return None
        return Nest(chain, [], [], [], frozenset())
    inside = frozenset(_values(loops[0]))
    counters, others = [], []
    for loop in loops:
        counter = _counter(loop)
        if counter is not None:
            counters.append(counter)
        elif any(bound in inside for bound in list(loop.operands)[:3]):
            return None
        else:
            others.append(loop)
    return Nest(chain, loops, counters, others, inside)


def _only_adds(loop: Any, first: Any, last: Any) -> bool:
    """Whether a loop carries one tensor, from which `first` begins and which `last` becomes, and does nothing else."""
    block = loop.regions[0].blocks[0]
    if len(block.arguments) != 2 or first != block.arguments[1] or _only_use(block.arguments[1]) is None:
        return False
    body = [view.operation for view in block.operations]
    if list(body[-1].operands) != [last] or _only_use(last) is None:
        return False
    inner = [each for each in body if each.name == "scf.for"]
    return all(
        each.name in _ALLOWED or each.name.startswith("arith.") or each in inner for each in body
    ) and (not inner or (len(inner) == 1 and inner[0].results[0] == last))


def _undisturbed(chain: list[Any]) -> bool:
    """Whether no operation of a block writes memory before the last of its products, from the first load on."""
    begun = False
    for view in chain[0].block.operations:
        operation = view.operation
        if operation == chain[-1]:
            return True
        begun = begun or operation.name == tpk.Load.OPERATION_NAME
        if begun and (
            operation.name not in _ALLOWED
            and not operation.name.startswith(
                ("arith.", "math.", "tensor.", "linalg.", "tpk.range", "tpk.program")
            )
        ):
            return False
    return False


def _values(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            yield from block.arguments
            for view in block.operations:
                yield from view.operation.results
                yield from _values(view.operation)


def constant(value: Any) -> int | None:
    """The value of a constant integer."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def _counter(loop: Any) -> Counter | None:
    start, stop, step = (constant(bound) for bound in list(loop.operands)[:3])
    if start is None or stop is None or step is None:
        return None
    return Counter(loop.regions[0].blocks[0].arguments[0], start, step, max(0, -(-(stop - start) // step)))

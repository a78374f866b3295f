"""Products of transposed operands: named operations that read them as they are."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

MAPS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "linalg.matmul": ("d0, d1, d2", (("d0", "d2"), ("d2", "d1"), ("d0", "d1"))),
    "linalg.batch_matmul": ("d0, d1, d2, d3", (("d0", "d1", "d3"), ("d0", "d3", "d2"), ("d0", "d1", "d2"))),
}
"""The dimensions of a product, and of them those of its operands and of its result."""


def take_transposed(kernel: Any) -> None:
    """Let products read what a `linalg.transpose` of their last two dimensions reads, by indexing maps."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name in MAPS:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    for operation in found:
        _take(operation)


def _take(operation: Any) -> None:
    dims, maps = MAPS[operation.name]
    taken = list(maps)
    for number, value in enumerate(list(operation.operands)[:2]):
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "linalg.transpose":
            continue
        rank = len(maps[number])
        if list(owner.attributes["permutation"]) != [*range(rank - 2), rank - 1, rank - 2]:
            continue
        operation.operands[number] = owner.operands[0]
        taken[number] = (*maps[number][:-2], maps[number][-1], maps[number][-2])
        if not any(True for _ in value.uses):
            owner.operation.erase()
    if taken != list(maps):
        texts = (f"affine_map<({dims}) -> ({', '.join(each)})>" for each in taken)
        operation.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.Attribute.parse(text) for text in texts])

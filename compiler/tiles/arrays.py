"""Which arrays a loop reads and writes, by the kernel's pointer arguments.

Loops whose loads and stores are of different arguments may load ahead of their stores, if the arguments have different
addresses: that is compared at run time. As elsewhere in the kit, arguments that overlap without having the same address
are separate arrays.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    STORE,
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuDma,
    NpuElementLoad,
    NpuElementStore,
    NpuGather,
    NpuScatter,
)
from triton_porting_kit.toolchain.mlir import ir

from .editing import NE, Editor, nested

SYNCHRONISES = tuple(cls.OPERATION_NAME for cls in (NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll))
"""Operations by which programs wait for each other."""


def argument(pointer: Any) -> Any | None:
    """The kernel's argument that a pointer is computed from; None if that is not known."""
    while not isinstance(pointer.owner, ir.Block):
        if pointer.owner.operation.name != "llvm.getelementptr":
            return None
        pointer = pointer.owner.operation.operands[0]
    around = pointer.owner.owner
    return pointer if "tpk.kernel" in around.attributes else None


def apart(editor: Editor, loop: Any) -> Any | None:
    """An i1: no load of a loop reads what the loop stores, and no two units store to one array. None: that cannot be
    known. It is computed at the start of the kernel.
    """
    loads: list[Any] = []
    stores: dict[str, list[Any]] = {}
    for operation in nested(loop.regions[0].blocks[0]):
        if operation.name in SYNCHRONISES:
            return None
        if NpuDma.isa(operation) and NpuDma(operation).direction == LOAD:
            loads.append(argument(NpuDma(operation).source))
        elif NpuDma.isa(operation) and NpuDma(operation).direction == STORE:
            stores.setdefault(NpuDma(operation).unit, []).append(argument(NpuDma(operation).target))
        elif NpuGather.isa(operation) or NpuElementLoad.isa(operation):
            loads.append(argument(_base(operation)))
        elif NpuScatter.isa(operation):
            stores.setdefault(NpuScatter(operation).unit, []).append(argument(_base(operation)))
        elif NpuElementStore.isa(operation):
            stores.setdefault("core", []).append(argument(_base(operation)))
    pairs = [(one, other) for found in stores.values() for one in found for other in loads]
    names = sorted(stores)
    for number, name in enumerate(names):
        for later in names[number + 1 :]:
            pairs += [(one, other) for one in stores[name] for other in stores[later]]
    if any(one is None or other is None or one == other for one, other in pairs):
        return None
    return differ(editor, list(dict.fromkeys(pairs)))


def _base(operation: Any) -> Any:
    for cls in (NpuGather, NpuScatter, NpuElementLoad, NpuElementStore):
        if cls.isa(operation):
            return cls(operation).base
    raise TypeError(operation.name)


def differ(editor: Editor, pairs: list[tuple[Any, Any]]) -> Any:
    """An i1 at the start of the kernel: in each pair of arguments, the addresses differ."""
    place = editor.at
    editor.at = ir.InsertionPoint.at_block_begin(editor.entry)
    numbers = {
        pointer: editor.value("llvm.ptrtoint", [pointer], editor.types.i64)
        for pointer in dict.fromkeys(pointer for pair in pairs for pointer in pair)
    }
    found = editor.both([editor.compare(NE, numbers[one], numbers[other]) for one, other in pairs])
    result = editor.constant(1, editor.types.i1) if found is None else found
    editor.at = place
    return result

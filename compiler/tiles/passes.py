"""The passes of the stage ``tiles`` by name: a vendor leaves one out, changes the order, or replaces one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from triton_porting_kit.errors import OptionError

from .beside import write_beside
from .overlap import overlap
from .products import raise_products
from .programs import loop_over_programs
from .sending import send_ahead
from .split import split
from .transfer import transfer
from .turning import turn_products
from .waits import remove_redundant

TilePass = Callable[..., Any]
"""Changes a module, in MLIR's bindings, for a chip: ``run(module, chip)``. Three names are special:

- ``split`` gets the most bytes of a piece, too, and returns whether it split anything;
- ``products`` returns how many products it raised;
- ``overlap`` gets the `Level` and ``num_stages``, too, and returns whether a lower level would take less memory.
"""

TILE_PASSES: Mapping[str, TilePass] = {
    "programs": loop_over_programs,
    "split": split,
    "turning": turn_products,
    "products": raise_products,
    "transfer": transfer,
    "beside": lambda module, chip: write_beside(module),
    "sending": send_ahead,
    "overlap": overlap,
    "waits": lambda module, chip: remove_redundant(module),
}
"""The kit's passes, in their order."""


def tile_passes(
    names: Iterable[str] | None = None, own: Mapping[str, TilePass] | None = None
) -> dict[str, TilePass]:
    """The passes to run, in the order of `names`, by default the kit's.

    `own` has passes that take the place of the kit's, or further ones. ``transfer`` has to be among them. Raises
    `OptionError` for names that neither knows, and for a pass of `own` that `names` lacks: it would never run.
    """
    own = own or {}
    known = {**TILE_PASSES, **own}
    chosen = list(TILE_PASSES if names is None else names)
    if unknown := [name for name in chosen if name not in known]:
        raise OptionError(
            f"there is no pass {unknown[0]!r}",
            remedy=f"choose from {', '.join(known)}, or give your own function",
        )
    if unused := [name for name in own if name not in chosen]:
        raise OptionError(
            f"the own pass {unused[0]!r} would never run: the passes to run are {', '.join(chosen)}",
            remedy="name it among them, or give it the name of the pass whose place it takes",
        )
    if "transfer" not in chosen:
        raise OptionError(
            "the passes lack 'transfer', and no other gives tiles a buffer",
            remedy="put it, or your own function of this name, where the kit has it",
        )
    if len(set(chosen)) != len(chosen):
        raise OptionError("a pass is named twice", remedy="give your own function under another name")
    return {name: known[name] for name in chosen}

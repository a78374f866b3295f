"""How Inductor cuts reductions."""

from __future__ import annotations

from typing import Any

from torch._inductor import config
from torch._inductor.choices import InductorChoices

from triton_porting_kit import __version__
from triton_porting_kit.pytorch.accelerator import accelerator

_SHORTEST_PIECE = 256
"""Elements."""


class Choices(InductorChoices):  # type: ignore[misc]
    """Inductor's choices, but for short pieces of reductions."""

    def uuid(self) -> str:
        """Identifies the choices in Inductor's cache keys."""
        return f"{type(self).__module__} {__version__}"

    @staticmethod
    def reduction_split_factor(
        device: Any, reduction_numel_hint: int, numel_hint: int, inner_reduction: bool
    ) -> int:
        """Split a reduction in pieces of some length only.

        With few cores Inductor (2.13) splits short reductions too, and fails on an assertion if it unrolls the pieces.
        """
        split = InductorChoices.reduction_split_factor(
            device, reduction_numel_hint, numel_hint, inner_reduction
        )
        short = device.type == accelerator().name and reduction_numel_hint < _SHORTEST_PIECE * split
        return 1 if short else int(split)


def register() -> None:
    """Make these choices Inductor's, unless the program has its own."""
    if config.inductor_choices_class is None:
        config.inductor_choices_class = Choices

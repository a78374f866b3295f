"""What the compilers that take the form agree on beyond upstream's dialects."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """How a kernel is passed to one family of compilers."""

    name: str
    source: str
    """Where the convention is described."""
    ranked_pointers: bool
    """Whether a pointer is a ``memref<?xT>`` or a ``memref<*xT>``."""
    element_wise_generic: bool
    """Whether element-wise operations are ``linalg.generic``, or ``arith`` and ``math`` on tensors."""
    attributes: tuple[str, ...] = ()
    """Unit attributes of a kernel's function."""

    def pointer(self, element: str) -> str:
        """The type of a pointer to `element`."""
        return f"memref<{'?' if self.ranked_pointers else '*'}x{element}>"


CONVENTIONS = {
    convention.name: convention
    for convention in (
        Convention(
            "triton-shared",
            "microsoft/triton-shared: `--triton-to-linalg-experimental`",
            ranked_pointers=False,
            element_wise_generic=True,
        ),
        Convention(
            "ascend",
            "Ascend/AscendNPU-IR and triton-ascend: `--triton-to-linalg`",
            ranked_pointers=True,
            element_wise_generic=False,
            attributes=("global_kernel",),
        ),
    )
}

"""Operators of the torch device: what makes, copies and views tensors, and what runs all others."""

from __future__ import annotations

from triton_porting_kit.pytorch.operators import (  # noqa: F401 (they declare operators)
    attention,
    convolution,
    copies,
    factories,
    fallback,
    indices,
    metadata,
    normalisation,
    recurrent,
    registry,
)


def register() -> None:
    """Register them with torch's dispatcher."""
    registry.register()
    registry.add_meta(recurrent.COMPOSED)
    fallback.register()

"""What differs between releases of Triton, as named facts about the installed one; `amd` has those of AMD."""

from __future__ import annotations

import dataclasses
import functools

from . import releases


def reads_default_backend() -> bool:
    """Whether Triton itself reads ``TRITON_DEFAULT_BACKEND``; else only the kit's drivers honour it."""
    return releases.release() >= (3, 7)


def unloads_modules() -> bool:
    """Whether Triton unloads the module of a kernel that nobody refers to any more, and calls a hook then."""
    return releases.release() >= (3, 8)


@functools.cache
def descriptor_flags() -> tuple[str, ...]:
    """The flags (i1) of a host tensor descriptor, which are passed between its strides and its shape as i32."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    fields = {field.name for field in dataclasses.fields(TensorDescriptor)}
    return ("padding", *(["round_f32_to_tf32"] if "round_f32_to_tf32" in fields else []))


def negates_floats() -> bool:
    """Whether ``-x`` of a float flips its sign; else it is ``0 - x``, and the negative of 0 is 0."""
    return releases.release() >= (3, 8)

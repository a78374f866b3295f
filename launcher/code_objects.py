"""Checks that a kernel of an AMDGPU code object takes its arguments as a launcher packs them.

Source: LLVM's "User Guide for AMDGPU Backend", section Code Object V5 Metadata: the names of a kernel's arguments, and
the hidden arguments that the runtime adds, with their offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_porting_kit.errors import ArgumentMismatch
from triton_porting_kit.launcher.layout import ArgLayout, ArgSlot
from triton_porting_kit.launcher.types import Kind

if TYPE_CHECKING:  # the kernel is passed in: importing the launcher does not load the reader
    from triton_porting_kit.binaries.code_object import Kernel, KernelArgument

#: The hidden arguments of code object version 5 and later: offset after the explicit arguments, and size.
_HIDDEN = {
    "hidden_block_count_x": (0, 4),
    "hidden_block_count_y": (4, 4),
    "hidden_block_count_z": (8, 4),
    "hidden_group_size_x": (12, 2),
    "hidden_group_size_y": (14, 2),
    "hidden_group_size_z": (16, 2),
    "hidden_remainder_x": (18, 2),
    "hidden_remainder_y": (20, 2),
    "hidden_remainder_z": (22, 2),
    "hidden_global_offset_x": (40, 8),
    "hidden_global_offset_y": (48, 8),
    "hidden_global_offset_z": (56, 8),
    "hidden_grid_dims": (64, 2),
    "hidden_printf_buffer": (72, 8),
    "hidden_hostcall_buffer": (80, 8),
    "hidden_multigrid_sync_arg": (88, 8),
    "hidden_heap_v1": (96, 8),
    "hidden_default_queue": (104, 8),
    "hidden_completion_action": (112, 8),
    "hidden_dynamic_lds_size": (120, 4),
    "hidden_private_base": (192, 4),
    "hidden_shared_base": (196, 4),
    "hidden_queue_ptr": (200, 8),
}
_HIDDEN_BYTES = 256


def check_kernel_arguments(layout: ArgLayout, kernel: Kernel) -> tuple[KernelArgument, ...]:
    """Check the explicit arguments of `kernel` against `layout`. Returns the hidden arguments that the runtime adds.

    Compared are the number of arguments, the offset and size of each and whether it is a pointer; the hidden ones of
    code object version 5 after them; and the size of the block. Raises `ArgumentMismatch`, which names the first
    argument that differs.
    """
    slots, explicit = (*layout.slots, *layout.hidden), kernel.explicit_arguments
    for index, (slot, argument) in enumerate(zip(slots, explicit, strict=False)):
        ours, theirs = _of_slot(slot), _of_argument(argument)
        if ours != theirs:
            raise ArgumentMismatch(kernel.name, index, slot.name, f"packed as {ours}, expected as {theirs}")
    if len(slots) > len(explicit):
        slot = slots[len(explicit)]
        raise ArgumentMismatch(
            kernel.name, len(explicit), slot.name, f"packed as {_of_slot(slot)}, but not one of the kernel's"
        )
    if len(slots) < len(explicit):
        missing = explicit[len(slots)]
        raise ArgumentMismatch(
            kernel.name, len(slots), missing.name, f"expected as {_of_argument(missing)}, but not packed"
        )
    return _check_hidden(layout, kernel)


def _check_hidden(layout: ArgLayout, kernel: Kernel) -> tuple[KernelArgument, ...]:
    hidden = kernel.hidden_arguments
    for index, argument in enumerate(hidden, len(kernel.explicit_arguments)):
        if argument.value_kind == "hidden_none":
            continue
        place = argument.offset - layout.size, argument.size
        if _HIDDEN.get(argument.value_kind) != place:
            raise ArgumentMismatch(
                kernel.name,
                index,
                argument.value_kind,
                f"{argument.size} bytes at {argument.offset}, which is not where code objects of version 5 have it "
                f"behind {layout.size} bytes of arguments",
            )
    size = layout.size + (_HIDDEN_BYTES if hidden else 0)
    # The padding after the last argument may be left out.
    if not size - layout.alignment < kernel.kernarg_segment_size <= size:
        raise ArgumentMismatch(
            kernel.name,
            None,
            None,
            f"the block has {size} bytes, the kernel wants {kernel.kernarg_segment_size}",
        )
    return hidden


def _of_slot(slot: ArgSlot) -> str:
    return _describe(slot.kind is Kind.POINTER, slot.size, slot.offset)


def _of_argument(argument: KernelArgument) -> str:
    return _describe(argument.value_kind == "global_buffer", argument.size, argument.offset)


def _describe(is_pointer: bool, size: int, offset: int) -> str:
    return f"{'a pointer' if is_pointer else 'a value'} of {size} bytes at {offset}"

"""The 64 bytes that tell an AMD GPU how to start a kernel, decoded field by field.

Source: LLVM's "User Guide for AMDGPU Backend", section Kernel Descriptor. The names are that guide's, in lower case and
without the registers' prefixes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from triton_porting_kit.errors import CodeObjectError

from .amdgpu_targets import Generation, generation_of

#: Group, private and argument segment, reserved, entry, reserved, registers 3, 1 and 2, properties, preload, reserved.
_LAYOUT = struct.Struct("<III4sq20sIIIHH4s")
SIZE = ALIGNMENT = _LAYOUT.size

_G = Generation
_ALL = frozenset(Generation)
_GFX9 = frozenset({_G.GFX9, _G.GFX90A})
_GFX10_ON = _ALL - _GFX9
_GFX11_ON = _GFX10_ON - {_G.GFX10}
_GFX12_ON = frozenset({_G.GFX12, _G.GFX125})
_TO_GFX11 = _ALL - _GFX12_ON
_GFX10_11 = frozenset({_G.GFX10, _G.GFX11})
_TO_GFX120 = _ALL - {_G.GFX125}
_PRELOADING = frozenset({_G.GFX90A, _G.GFX125})


class _Field(NamedTuple):
    name: str
    shift: int
    width: int
    generations: frozenset[Generation] = _ALL


_RSRC1 = (
    _Field("granulated_workitem_vgpr_count", 0, 6),
    _Field("granulated_wavefront_sgpr_count", 6, 4, _GFX9),
    _Field("float_round_mode_32", 12, 2),
    _Field("float_round_mode_16_64", 14, 2),
    _Field("float_denorm_mode_32", 16, 2),
    _Field("float_denorm_mode_16_64", 18, 2),
    _Field("enable_dx10_clamp", 21, 1, _TO_GFX11),
    _Field("enable_wg_rr_en", 21, 1, _GFX12_ON),
    _Field("enable_ieee_mode", 23, 1, _TO_GFX11),
    _Field("disable_perf", 23, 1, _GFX12_ON),
    _Field("fp16_ovfl", 26, 1),
    _Field("flat_scratch_is_nv", 27, 1, frozenset({_G.GFX125})),
    _Field("wgp_mode", 29, 1, _GFX10_ON),
    _Field("mem_ordered", 30, 1, _GFX10_ON),
    _Field("fwd_progress", 31, 1, _GFX10_ON),
)
_RSRC2 = (
    _Field("enable_private_segment", 0, 1),
    _Field("user_sgpr_count", 1, 5, _TO_GFX120),
    _Field("user_sgpr_count", 1, 6, frozenset({_G.GFX125})),
    _Field("enable_trap_handler", 6, 1, _TO_GFX11),
    _Field("enable_dynamic_vgpr", 6, 1, frozenset({_G.GFX12})),
    _Field("enable_sgpr_workgroup_id_x", 7, 1),
    _Field("enable_sgpr_workgroup_id_y", 8, 1),
    _Field("enable_sgpr_workgroup_id_z", 9, 1),
    _Field("enable_sgpr_workgroup_info", 10, 1),
    _Field("enable_vgpr_workitem_id", 11, 2),
    _Field("enable_exception_ieee_754_fp_invalid_operation", 24, 1),
    _Field("enable_exception_fp_denormal_source", 25, 1),
    _Field("enable_exception_ieee_754_fp_division_by_zero", 26, 1),
    _Field("enable_exception_ieee_754_fp_overflow", 27, 1),
    _Field("enable_exception_ieee_754_fp_underflow", 28, 1),
    _Field("enable_exception_ieee_754_fp_inexact", 29, 1),
    _Field("enable_exception_int_divide_by_zero", 30, 1),
    _Field("wgp_takeover", 31, 1, _GFX12_ON),
)
_RSRC3 = (
    _Field("accum_offset", 0, 6, frozenset({_G.GFX90A})),
    _Field("tg_split", 16, 1, frozenset({_G.GFX90A})),
    _Field("shared_vgpr_count", 0, 4, _GFX10_11),
    _Field("inst_pref_size", 4, 6, frozenset({_G.GFX11})),
    _Field("inst_pref_size", 4, 8, _GFX12_ON),
    _Field("trap_on_start", 10, 1, frozenset({_G.GFX11})),
    _Field("trap_on_end", 11, 1, frozenset({_G.GFX11})),
    _Field("glg_en", 13, 1, _GFX12_ON),
    _Field("named_bar_cnt", 14, 3, frozenset({_G.GFX125})),
    _Field("enable_dynamic_vgpr", 17, 1, frozenset({_G.GFX125})),
    _Field("tcp_split", 18, 3, frozenset({_G.GFX125})),
    _Field("enable_didt_throttle", 21, 1, frozenset({_G.GFX125})),
    _Field("image_op", 31, 1, _GFX11_ON),
)
_PROPERTIES = (
    _Field("enable_sgpr_private_segment_buffer", 0, 1),
    _Field("enable_sgpr_dispatch_ptr", 1, 1),
    _Field("enable_sgpr_queue_ptr", 2, 1),
    _Field("enable_sgpr_kernarg_segment_ptr", 3, 1),
    _Field("enable_sgpr_dispatch_id", 4, 1),
    _Field("enable_sgpr_flat_scratch_init", 5, 1),
    _Field("enable_sgpr_private_segment_size", 6, 1),
    _Field("enable_wavefront_size32", 10, 1, _GFX10_ON),
    _Field("uses_dynamic_stack", 11, 1),
)
_PRELOAD = (
    _Field("kernarg_preload_spec_length", 0, 7, _PRELOADING),
    _Field("kernarg_preload_spec_offset", 7, 9, _PRELOADING),
)


@dataclass(frozen=True)
class KernelDescriptor:
    """One kernel's descriptor; sizes in bytes.

    `fields` are the bit fields of its generation of architectures, as stored.
    """

    generation: Generation
    group_segment_fixed_size: int
    private_segment_fixed_size: int
    kernarg_size: int
    kernel_code_entry_byte_offset: int
    """The distance from the descriptor's address to that of the first instruction."""
    fields: Mapping[str, int]

    @property
    def wavefront_size(self) -> int:
        """Threads of a wavefront: 32 or 64."""
        return 32 if self.fields.get("enable_wavefront_size32") else 64

    @property
    def allocated_vgprs(self) -> int:
        """Vector registers per thread that are allocated, including accumulation registers: whole granules."""
        granule = 4
        if self.generation is Generation.GFX90A:
            granule = 8
        elif self.wavefront_size == 32:
            granule = 16 if self.generation is Generation.GFX125 else 8
        return (self.fields["granulated_workitem_vgpr_count"] + 1) * granule

    @property
    def allocated_sgprs(self) -> int | None:
        """Scalar registers per wavefront that are allocated; None if every wavefront gets all (gfx10 and later)."""
        count = self.fields.get("granulated_wavefront_sgpr_count")
        return None if count is None else (count // 2 + 1) * 16

    @property
    def first_accumulation_vgpr(self) -> int | None:
        """The index of the first accumulation register among the allocated ones; None if there are none."""
        offset = self.fields.get("accum_offset")
        return None if offset is None else (offset + 1) * 4


def read_descriptor(data: bytes, arch: str) -> KernelDescriptor:
    """Decode 64 bytes as the descriptor of a kernel for an architecture.

    Raises `CodeObjectError` for another length, or if bits are set that must be 0: reserved bits, and those that the
    GPU's command processor or a debugger sets.
    """
    if len(data) != SIZE:
        raise CodeObjectError(f"a kernel descriptor has {SIZE} bytes, not {len(data)}")
    group, private, kernarg, gap1, entry, gap2, rsrc3, rsrc1, rsrc2, properties, preload, gap3 = (
        _LAYOUT.unpack(data)
    )
    if any(gap1 + gap2 + gap3):
        raise CodeObjectError("reserved bytes of the kernel descriptor are not 0: damaged?")
    generation = generation_of(arch)
    fields: dict[str, int] = {}
    for name, word, layout in (
        ("compute_pgm_rsrc1", rsrc1, _RSRC1),
        ("compute_pgm_rsrc2", rsrc2, _RSRC2),
        ("compute_pgm_rsrc3", rsrc3, _RSRC3),
        ("kernel_code_properties", properties, _PROPERTIES),
        ("kernarg_preload", preload, _PRELOAD),
    ):
        for field in layout:
            if generation in field.generations:
                mask = (1 << field.width) - 1
                fields[field.name] = word >> field.shift & mask
                word &= ~(mask << field.shift)
        if word:
            raise CodeObjectError(
                f"{name} of the kernel descriptor has bits {word:#x} set, which {arch} does not know: damaged, or "
                f"made for another architecture"
            )
    return KernelDescriptor(generation, group, private, kernarg, entry, fields)

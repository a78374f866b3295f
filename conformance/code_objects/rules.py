"""The rules for a code object. Each is a function that yields violations with both values and a remedy.

Rules compare independent sources: the parts of the code object come from the compiler, the argument block from the
kit's launcher, launch sizes from Triton's metadata, and limits from the architecture's documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.binaries.code_object import CodeObject, Kernel
from triton_porting_kit.conformance.code_objects.architectures import Architecture
from triton_porting_kit.conformance.code_objects.products import (
    Product,
    instructions_for,
    matrix_instructions,
    operands_of,
)
from triton_porting_kit.errors import ArgumentMismatch
from triton_porting_kit.launcher import ArgLayout, check_kernel_arguments
from triton_porting_kit.toolchain.amdgpu_disassembler import UNKNOWN, Instruction

SCRATCH = {"global_scratch": "*i8", "profile_scratch": "*i8"}
"""Pointers that Triton's lowering to LLVM appends to a kernel's parameters."""
MAX_THREADS = 1024
"""The maximum number of threads of a work-group on all AMD GPUs."""


@dataclass(frozen=True)
class Subject:
    """A kernel in a code object, with the data from other sources that it is compared with."""

    code_object: CodeObject
    kernel: Kernel
    target: Any
    """Triton's target that it was compiled for."""
    metadata: Any
    """Triton's metadata of the kernel."""
    layout: ArgLayout | None
    """The launcher's argument block; None if the kernel has no signature."""
    instructions: Sequence[Instruction]
    products: frozenset[Product]
    architecture: Architecture | None

    @property
    def matrix(self) -> dict[str, int]:
        """The number of occurrences of each matrix instruction."""
        return dict(matrix_instructions(instruction.mnemonic for instruction in self.instructions))

    @property
    def lds(self) -> int:
        """The number of bytes of LDS of a work-group, including dynamic LDS."""
        added = self.kernel.dynamic_group_segment_size
        shared = int(getattr(self.metadata, "shared", 0) or 0)
        return self.kernel.group_segment_fixed_size + max(shared, added or 0)


Rule = Callable[[Subject], Iterator[str]]


def threads(subject: Subject) -> Iterator[str]:
    """The sizes of wavefronts and work-groups match Triton's metadata."""
    kernel, metadata = subject.kernel, subject.metadata
    warp = int(subject.target.warp_size)
    if kernel.wavefront_size != warp:
        yield (
            f"its wavefronts have {kernel.wavefront_size} lanes, but the target's warps have {warp}; compile with "
            f"+wavefrontsize{warp}"
        )
    if subject.architecture is not None and warp != subject.architecture.wavefront:
        yield (
            f"the target's warps have {warp} lanes, but Triton compiles for {subject.architecture.wavefront} on "
            f"{subject.code_object.arch}; name that warp size in the target"
        )
    wanted = int(metadata.num_warps) * int(getattr(metadata, "warp_size", warp) or warp)
    if kernel.max_flat_workgroup_size != wanted:
        yield (
            f"its metadata note allows work-groups of {kernel.max_flat_workgroup_size} threads, but a launch has "
            f"{metadata.num_warps} warps, {wanted} threads; set the attribute amdgpu-flat-work-group-size"
        )
    if wanted > MAX_THREADS:
        yield f"a launch has {wanted} threads in a work-group, but the hardware limit is {MAX_THREADS}; use fewer warps"


def arguments(subject: Subject) -> Iterator[str]:
    """The arguments lie where the launcher puts them."""
    if subject.layout is None:
        return
    kernel, slots = subject.kernel, subject.layout.slots
    count = len(kernel.explicit_arguments)
    if not len(slots) <= count <= len(slots) + len(SCRATCH):
        yield (
            f"it takes {count} arguments, but the launcher passes {len(slots)} ({', '.join(s.name for s in slots)}) "
            f"and up to {len(SCRATCH)} pointers to scratch; compile it with the signature of the launch"
        )
        return
    try:
        hidden = dict(list(SCRATCH.items())[: count - len(slots)])
        check_kernel_arguments(ArgLayout.from_signature(subject.layout.signature, hidden), kernel)
    except ArgumentMismatch as error:
        yield str(error)
    needed = max((slot.alignment for slot in slots), default=1)
    if kernel.kernarg_segment_align < needed:
        yield (
            f"the argument block is aligned to {kernel.kernarg_segment_align} bytes, but its largest argument needs "
            f"{needed}; keep the alignment that the assembler writes"
        )


def entry(subject: Subject) -> Iterator[str]:
    """The descriptor requests the address of the arguments that the code reads."""
    enabled = subject.kernel.descriptor.fields.get("enable_sgpr_kernarg_segment_ptr")
    reads = any(instruction.mnemonic.startswith("s_load") for instruction in subject.instructions)
    if subject.kernel.explicit_arguments and reads and not enabled:
        yield (
            "its descriptor does not request the argument block's address (enable_sgpr_kernarg_segment_ptr is 0), but "
            "the code reads arguments; keep the descriptor that the assembler writes"
        )


def lds(subject: Subject) -> Iterator[str]:
    """On-chip memory is within the architecture's limit, and the binary declares the size that a launch adds."""
    kernel, shared = subject.kernel, int(getattr(subject.metadata, "shared", 0) or 0)
    added = kernel.dynamic_group_segment_size
    if added is not None and added != shared:
        yield (
            f"the code object declares {added} bytes of dynamic LDS, but Triton's metadata {shared}; take the "
            'symbol\'s value from metadata["shared"]'
        )
    limit = subject.architecture.lds if subject.architecture else None
    if limit is not None and subject.lds > limit:
        yield (
            f"a work-group needs {subject.lds} bytes of LDS, but {subject.code_object.arch} has {limit}; use smaller "
            "tiles or fewer stages"
        )


def registers(subject: Subject) -> Iterator[str]:
    """Register counts are within the architecture's limits, and the descriptor allocates all used registers."""
    kernel, limits = subject.kernel, subject.architecture
    if limits is not None:
        for what, used, most in (
            ("vector registers", kernel.vgpr_count, limits.vgprs),
            ("accumulation registers", kernel.agpr_count, limits.agprs),
            ("scalar registers", kernel.sgpr_count, limits.sgprs),
        ):
            if used > most:
                yield f"it uses {used} {what}, but {subject.code_object.arch} has {most}; was it assembled for another?"
        if limits.lane_registers is not None:
            yield from _resident(kernel, limits.lane_registers, limits.simds)
    allocated = kernel.descriptor.allocated_sgprs
    if allocated is not None and kernel.sgpr_count > allocated:
        yield (
            f"it uses {kernel.sgpr_count} scalar registers by the metadata note, but the descriptor allocates "
            f"{allocated}"
        )
    first = kernel.descriptor.first_accumulation_vgpr
    if (
        first is not None
        and kernel.agpr_count
        and first + kernel.agpr_count > kernel.descriptor.allocated_vgprs
    ):
        yield (
            f"its {kernel.agpr_count} accumulation registers begin at {first} by the descriptor, which allocates "
            f"{kernel.descriptor.allocated_vgprs} registers in all"
        )


def _resident(kernel: Kernel, lane_registers: int, simds: int) -> Iterator[str]:
    """Check that all wavefronts of a work-group can be resident at once."""
    wavefronts = -(-kernel.max_flat_workgroup_size // kernel.wavefront_size)
    together = -(-wavefronts // simds)
    needed = together * kernel.descriptor.allocated_vgprs
    if needed > lane_registers:
        yield (
            f"a work-group has {wavefronts} wavefronts of {kernel.descriptor.allocated_vgprs} registers, {together} on "
            f"each SIMD, which has {lane_registers} registers a lane; the launch would be refused: give the code "
            "generator the number of threads"
        )


def code(subject: Subject) -> Iterator[str]:
    """The code consists of instructions of the architecture, and has an end."""
    unknown = [i for i in subject.instructions if i.mnemonic == UNKNOWN]
    if unknown:
        yield (
            f"{len(unknown)} of its {len(subject.instructions)} instructions are none of {subject.code_object.arch}, "
            f"the first at byte {unknown[0].offset}: {unknown[0].text}; was it assembled for another architecture, or "
            "is the file damaged?"
        )
    elif not any(i.mnemonic.startswith("s_endpgm") for i in subject.instructions):
        yield "its code never ends (no s_endpgm): it is cut off"


def matrices(subject: Subject) -> Iterator[str]:
    """Matrix products use the matrix instructions that the architecture has for their types."""
    if subject.architecture is None:
        return
    found = {operands_of(name) for name in subject.matrix}
    for product in sorted(subject.products, key=str):
        wanted = instructions_for(product, subject.architecture)
        if wanted and not found.intersection(wanted):
            arch, has = subject.code_object.arch, " or ".join(dict.fromkeys(wanted))
            there = ", ".join(sorted(subject.matrix)) or "none"
            yield (
                f"{product}: {arch} has matrix instructions on {has} for it, but the code has {there}; the compiler's "
                "passes used scalar arithmetic or another type: see the dot's layout in the stage ttgir "
                "(amd_mfma, amd_wmma)"
            )


RULES: tuple[Rule, ...] = (
    threads,
    arguments,
    entry,
    lds,
    registers,
    code,
    matrices,
)
"""The rules in order. The docstring of a rule is its text in the report."""

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
    generic_syntax: bool = False
    """Whether the text is in MLIR's generic syntax, which releases of LLVM share: the pretty one changes."""
    llvm_19: bool = False
    """Whether the compiler is built with LLVM 19, which has other numbers in generic syntax."""
    leading: tuple[str, ...] = ()
    """Types of arguments that come before the kernel's own and that the compiler's runtime gives."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Attributes of a kernel's function, in MLIR's syntax."""
    messages: bool = False
    """Whether assertions and prints are calls of external functions; else they are refused."""
    convolutions: bool = False
    """Whether products that are a convolution become a named one."""
    transposed_products: bool = False
    """Whether products read transposed operands by indexing maps, which LLVM has since its release 20."""
    mix_mode: bool = False
    """Whether an attribute says if the kernel has products."""
    executable: str = ""
    """The pipeline of IREE's that compiles the kernel, which is then in an executable of IREE's, beside a function that
    dispatches its grid. An executable has no heap: loaded blocks are tensors."""

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
            messages=True,
            convolutions=True,
            transposed_products=True,
        ),
        Convention(
            "ascend",
            "Ascend/AscendNPU-IR and triton-ascend: `--triton-to-linalg`",
            ranked_pointers=True,
            element_wise_generic=False,
            generic_syntax=True,
            llvm_19=True,
            leading=("memref<?xi8>", "memref<?xi8>"),
            attributes=(
                ("SyncBlockLockArgIdx", "0 : i64"),
                ("WorkspaceArgIdx", "1 : i64"),
                ("global_kernel", '"local"'),
            ),
            mix_mode=True,
        ),
        *(
            Convention(
                name,
                "IREE: its dialects `stream`, `hal` and `util` around upstream's, as `iree-compile` takes a grid",
                ranked_pointers=True,
                element_wise_generic=True,
                generic_syntax=True,
                convolutions=True,
                transposed_products=True,
                executable=f"#iree_codegen.translation_info<pipeline = {pipeline}>",
            )
            for name, pipeline in (
                ("iree", "#iree_cpu.pipeline<Default>"),
                ("iree-rocm", "#iree_gpu.pipeline<BaseLowering> workgroup_size = [1, 1, 1]"),
            )
        ),
    )
}

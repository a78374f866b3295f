"""The pipeline whose last stage is a vendor's compiler of C++, C or OpenCL C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.cpp.dialects import DIALECTS
from triton_porting_kit.compiler.cpp.header import CppHeader
from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget

CPP_COMMAND = (
    "c++", "-std=c++17", "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno",
    "-Wno-psabi", "-Wl,--as-needed", "-o", "{output}", "{input}",
)  # fmt: skip
"""The system's C++ compiler with the options that kernels need. A vendor's command needs equivalent ones."""


C_COMMAND = ("cc", "-std=c99", *CPP_COMMAND[2:])
"""The same for C."""


def cpp_stages(
    command: Sequence[str] = CPP_COMMAND,
    *,
    binary: str = "so",
    header: CppHeader | None = None,
    timeout: float = 300.0,
    dialect: str = "cpp",
    buffers: bool = False,
) -> tuple[Stage, Stage]:
    """The stage ``cpp``, which writes a loops artefact as C++, and the stage `binary`, which builds it with `command`.

    `dialect` names another language, and the first stage then has its name: ``c`` for C99 with GCC's vectors,
    ``opencl`` for OpenCL C (docs/contracts.md). Raises ValueError for any other name. `command` is a compiler and its
    arguments; ``{input}`` and ``{output}`` stand for the paths of the source and of the result. It runs without a shell
    for at most `timeout` seconds. It must not contract multiplications and additions, nor assume that floats are
    finite. The result is any binary that the chip loads; the text exports the symbols of the kernel ABI. The loops must
    be made for a target without special instructions, such as `CpuTarget.portable()`. `header` is that of loops for a
    chip with on-chip memory; `command` has to name its folder. With `buffers`, OpenCL C's pointers are buffers with
    offsets. The stages raise `CompilationError` with the kernel line.
    """
    kept = tuple(command)
    if dialect not in DIALECTS:
        raise ValueError(f"there is no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    language = DIALECTS[dialect]

    def run_cpp(source: Any, metadata: Metadata) -> str:
        from triton_porting_kit.compiler.cpp.module import emit

        return emit(source, language, header, buffers=buffers)

    def run_build(source: Any, metadata: Metadata) -> bytes:
        from triton_porting_kit.compiler.cpp import build

        return build.build(str(source), kept, timeout=timeout, dialect=language)

    return Stage(dialect, run_cpp), Stage(binary, run_build)


def cpp_pipeline(
    target: CpuTarget | None = None,
    command: Sequence[str] = CPP_COMMAND,
    *,
    binary: str = "so",
    fuse_multiply_add: bool = False,
    threads: int = 1,
    timeout: float = 300.0,
    dialect: str = "cpp",
    buffers: bool = False,
    work_items: int = 1,
    local_bytes: int = 0,
    sub_group: int = 1,
) -> Pipeline:
    """``ttir`` → ``structured`` → ``loops`` → `dialect` → `binary`; see `cpp_stages`.

    `target` determines the width of vectors; the default is `CpuTarget.portable()`. With `fuse_multiply_add`, a product
    and the sum that it is added to are rounded once, by ``__builtin_fma``: for chips that have the instruction.
    `threads` is as in `cpu_pipeline`. With more than one of `work_items`, a power of two, a stage ``simt`` comes before
    OpenCL C: the work-items of a work-group run a program together, with scratch in local memory where it takes at most
    `local_bytes`. If a sub-group has `sub_group` of them, what only one does needs no barrier of the work-group.
    """
    front = cpu_pipeline(
        target or CpuTarget.portable(),
        fuse_multiply_add=fuse_multiply_add,
        threads=threads,
        work_items=work_items,
    ).until("loops")
    if buffers:
        from triton_porting_kit.compiler.cpp.buffers import without_numbers

        front = front.replace("loops", without_numbers(front.stages[-1]))
    last = cpp_stages(command, binary=binary, timeout=timeout, dialect=dialect, buffers=buffers)
    together = () if work_items == 1 else (_simt_stage(work_items, local_bytes, sub_group),)
    return Pipeline((*front.stages, *together, *last))


def _simt_stage(work_items: int, local_bytes: int, sub_group: int) -> Stage:
    """The stage that distributes the loops over work-items."""

    def run(source: Any, metadata: Metadata) -> Any:
        from triton_porting_kit.compiler import defects, simt

        with defects.blamed("simt", metadata):
            return simt.distribute(source, work_items, local_bytes, sub_group)

    def check(artefact: Any) -> None:
        from triton_porting_kit.compiler import artefacts

        artefacts.parse_mlir(str(artefact))

    return Stage("simt", run, check)

"""The OpenCL compiler: the loops as OpenCL C, built by the driver when Triton compiles."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from functools import partial
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit import __version__, compiler
from triton_porting_kit.compiler import (
    FP8_TYPES,
    CpuTarget,
    Pipeline,
    PipelineBackend,
    Stage,
    source_digest,
    toolchain_versions,
)
from triton_porting_kit.errors import OptionError

VECTOR_BYTES = (64, 32, 16)
"""Values of the option ``vector_bytes``."""
MOST_LANES = 16
WORK_ITEMS = "TPK_OPENCL_WORK_ITEMS"
"""Environment variable: the default of the option ``work_items``."""
_LANES = re.compile(r"vector<(\d+)x")


def _vector_bytes(native: int) -> int:
    """The widest vectors that a device computes with at once."""
    return next((size for size in VECTOR_BYTES if size <= native), VECTOR_BYTES[-1])


class OpenCLBackend(PipelineBackend):
    """Compiles Triton kernels to containers of OpenCL C and the binary that a device's driver makes of it."""

    name = "opencl"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "opencl")

    def default_options(self) -> Mapping[str, Any]:
        info = _info(self.target.arch)
        return {
            "num_warps": 4 if info and info.is_gpu else 1,
            "supported_fp8_dtypes": FP8_TYPES,
            "deprecated_fp8_dot_operand_dtypes": (),
            "default_dot_input_precision": "ieee",
            "allowed_dot_input_precisions": ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"),
            "opencl_driver": info.driver if info else "",
            "opencl_buffers": bool(info and not info.shares_memory),
            "vector_bytes": _vector_bytes(info.vector_bytes if info else 0),
            "work_items": int(os.environ.get(WORK_ITEMS, "0")),
            "sub_group_size": max(_sub_group_sizes(info)) if info and info.is_gpu else 1,
        }

    def pipeline(self, options: Any) -> Pipeline:
        if options.vector_bytes not in VECTOR_BYTES:
            raise OptionError(
                f"vector_bytes is {options.vector_bytes}",
                remedy="give 16, 32 or 64, or leave it to the width of the device's vectors",
            )
        work_items = self._work_items(options)
        info = _info(self.target.arch)
        fronts = [
            compiler.cpp_pipeline(
                CpuTarget.portable(size),
                fuse_multiply_add=options.enable_fp_fusion,
                dialect="opencl",
                buffers=options.opencl_buffers,
                work_items=work_items,
                local_bytes=info.local_memory_bytes if info else 0,
                sub_group=self._sub_group(options, work_items),
            ).until("opencl")
            for size in VECTOR_BYTES
            if size <= options.vector_bytes
        ]
        lowerings = [next(stage for stage in front.stages if stage.name == "loops") for front in fronts]

        def loops(source: Any, metadata: MutableMapping[str, Any]) -> Any:
            """The loops for the widest vectors of which none has more lanes than OpenCL C's."""
            for lowering in lowerings:
                lowered = lowering.run(source, metadata)
                if max(map(int, _LANES.findall(str(lowered))), default=0) <= MOST_LANES:
                    break
            return lowered

        stages = [Stage("loops", loops) if stage.name == "loops" else stage for stage in fronts[0].stages]
        build = partial(self._build, buffers=options.opencl_buffers)
        return Pipeline((*stages, Stage("clbin", build)))

    def _work_items(self, options: Any) -> int:
        """The work-items of a program: as asked for, or as many as its warps have; one if the device is no GPU."""
        info = _info(self.target.arch)
        asked = int(options.work_items)
        if asked < 0 or asked & (asked - 1):
            raise OptionError(
                f"work_items is {asked}", remedy="give a power of two, or 0 for num_warps times the warp size"
            )
        if not asked:
            asked = options.num_warps * self.target.warp_size if info is None or info.is_gpu else 1
        most = info.largest_group if info else asked
        return min(asked, 1 << most.bit_length() - 1)

    def _sub_group(self, options: Any, work_items: int) -> int:
        """The work-items in a sub-group: as asked for, or as many as a smaller work-group allows; 1 for none."""
        info, asked = _info(self.target.arch), int(options.sub_group_size)
        sizes = {1, asked} if info is None else _sub_group_sizes(info)
        if asked not in sizes or asked & (asked - 1):
            raise OptionError(
                f"sub_group_size is {asked}",
                remedy=f"give one of {', '.join(map(str, sorted(sizes - {asked})))}",
            )
        return max(size for size in sizes if size <= min(asked, work_items) and not size & (size - 1))

    def _build(self, source: Any, metadata: MutableMapping[str, Any], *, buffers: bool) -> bytes:
        """The container of a kernel. Raises `CompilationError` at the kernel's line where the driver refuses it."""
        from triton_porting_kit.driver.opencl import BuildFailure, Container, build_source

        text, name, info = str(source), str(metadata["name"]), _info(self.target.arch)
        symbols = compiler.opencl_symbols(text)
        (scratch, _), (_, *pointers), (work_items, is_local, *_) = (
            next((values for key, values in symbols.items() if key.endswith(suffix)), (1, 0))
            for suffix in ("scratch_bytes", "pointers", "work_group")
        )
        binary = b""
        if info is not None:
            try:
                binary = build_source(info, text)
            except BuildFailure as failure:
                raise compiler.opencl_failure(text, failure.log, info.name) from None
        driver = info.driver if info else ""
        return Container(
            name,
            compiler.opencl_kernel_name(text),
            0 if is_local else scratch,
            tuple(pointers),
            str(self.target.arch),
            driver,
            text,
            binary,
            buffers,
            work_items,
            max(scratch, 1) if is_local else 0,
        ).pack()

    @classmethod
    def libdevice(cls) -> ModuleType:
        from triton_porting_kit.backends.cpu import libdevice

        return libdevice

    def version(self) -> str:
        digests = (
            source_digest(f"triton_porting_kit.{package}") for package in ("compiler", "backends.opencl")
        )
        return "-".join((__version__, *digests, toolchain_versions()))


def _sub_group_sizes(info: Any) -> set[int]:
    """The sizes of sub-groups that kernels may ask for, and 1; only OpenCL C 3.0 has their functions everywhere."""
    return {1, *(info.sub_group_sizes if "CL3.0" in info.build_options else ())}


def _info(arch: object) -> Any:
    """The device of this machine that a target names; None where there is none, as when only compiling."""
    from triton_porting_kit.driver.opencl import device_infos, has_platforms

    if not has_platforms():
        return None
    return next((info for info in device_infos() if info.arch == arch), None)

"""What Inductor generates code with: its own classes for Triton, and calls of ``torch.<name>``."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import DeviceOpOverrides, register_device_op_overrides
from torch._inductor.codegen.cpp_wrapper_gpu import CppWrapperGpu as CppWrapperCodegen
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

from triton_porting_kit.pytorch.accelerator import accelerator

__all__ = ["CppWrapperCodegen", "PythonWrapperCodegen", "Scheduling", "WrapperFxCodegen"]


class Scheduling(TritonScheduling):
    """Inductor's fusion for Triton."""

    def can_fuse_horizontal(self, node1: Any, node2: Any) -> bool:
        """Not of templates with nodes that do not use their results.

        Inductor (2.13) takes such a node for an epilogue if it is as large as a prologue that the template has, and
        raises CantSplit, since the template's own result has another size.
        """
        if node1.is_template() or node2.is_template():
            return False
        return bool(super().can_fuse_horizontal(node1, node2))


class Overrides(DeviceOpOverrides):
    """Source text of the calls."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"from triton_porting_kit.pytorch.device.streams import raw_stream as {name}"

    def kernel_driver(self) -> str:
        name = accelerator().name
        raise NotImplementedError(
            f"AOTInductor and cpp_wrapper are not available on {name}: their C++ code loads and launches kernels by "
            "functions in C++ that a device written in Python lacks. Use torch.compile, whose code is cached on disk, "
            "or compile for the CPU"
        )

    def set_device(self, device_idx: int) -> str:
        return f"torch.{accelerator().name}.set_device({device_idx})"

    def synchronize(self) -> str:
        return f"torch.{accelerator().name}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.{accelerator().name}.device({device_idx})"

    def current_stream(self) -> str:
        return f"torch.{accelerator().name}.current_stream()"

    def stream_handle(self, stream_name: str) -> str:
        return f"{stream_name}.stream_id"


register_device_op_overrides(accelerator().name, Overrides())

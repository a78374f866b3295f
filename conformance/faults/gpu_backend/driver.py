"""The driver that Triton requires next to the compiler. It is never active, because it has no device."""

from __future__ import annotations

from typing import Any, NoReturn

from triton.backends import driver

from triton_porting_kit.conformance.faults.gpu_backend import NAME


class FaultyGPUDriver(driver.DriverBase):  # type: ignore[misc]
    """A driver that is never active and raises in all methods that need a device."""

    @classmethod
    def is_active(cls) -> bool:
        return False

    def get_current_target(self) -> NoReturn:
        raise NotImplementedError(f"the test backend {NAME} only compiles")

    def get_active_torch_device(self) -> NoReturn:
        raise NotImplementedError(f"the test backend {NAME} only compiles")

    def get_benchmarker(self) -> NoReturn:
        raise NotImplementedError(f"the test backend {NAME} only compiles")

    def map_python_to_cpp_type(self, ty: str) -> Any:
        return ty

"""The host CPU as a device: kernels are relocatable objects that run on all cores of this process."""

from triton_porting_kit.driver.host.device import HostDevice

__all__ = ["HostDevice"]

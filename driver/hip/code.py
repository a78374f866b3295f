"""Checks whether a device can run a code object, before HIP sees it: HIP's own errors say little."""

from __future__ import annotations

from triton_porting_kit.binaries.code_object import CodeObject, Kernel, read_code_object
from triton_porting_kit.driver.properties import DeviceProperties
from triton_porting_kit.errors import CodeObjectError, InvalidModule


def check_code_object(binary: bytes, name: str, target_id: str, properties: DeviceProperties) -> CodeObject:
    """The code object, if it has kernel `name` and is for the device. Raises `InvalidModule`.

    `target_id` is the device's, as HIP reports it: the architecture with all of its features, on or off.
    """
    try:
        code = read_code_object(binary)
    except CodeObjectError as error:
        raise InvalidModule(str(error)) from None
    check_target(code.target_id, target_id)
    kernel = code.kernels.get(name)
    if kernel is None:
        raise InvalidModule(
            f"it has no kernel '{name}', it has {', '.join(sorted(code.kernels)) or 'none'}: give the name that the "
            "compiler put into its metadata"
        )
    check_kernel(kernel, kernel.dynamic_group_segment_size or 0, properties)
    return code


def check_target(code: str, device: str) -> None:
    """Raise `InvalidModule` if code of one target ID does not run on a device of another.

    A feature that the code does not name may be on or off; one that it names must be as on the device (LLVM
    AMDGPUUsage, "Target ID"). Whether a generic architecture covers the device is left to HIP.
    """
    arch, *features = code.split(":")
    device_arch, *device_features = device.split(":")
    if arch != device_arch and not arch.endswith("-generic"):
        raise InvalidModule(
            f"it was made for {arch}, the device is {device_arch}: compile it for {device_arch}"
        )
    for feature in features:
        opposite = feature[:-1] + ("-" if feature.endswith("+") else "+")
        if opposite in device_features:
            raise InvalidModule(
                f"it was made for {code}, the device is {device}: compile it for {device}, or without {feature}"
            )


def check_kernel(kernel: Kernel, dynamic_lds: int, properties: DeviceProperties) -> int:
    """Bytes of local memory of one program. Raises `InvalidModule` if the device lacks the memory or the threads."""
    lds = kernel.group_segment_fixed_size + dynamic_lds
    if lds > properties.max_scratch_bytes:
        raise InvalidModule(
            f"kernel '{kernel.name}' takes {lds} bytes of local memory (LDS), the device has "
            f"{properties.max_scratch_bytes} for a program: make its blocks smaller, or reduce num_stages"
        )
    if kernel.max_flat_workgroup_size > properties.max_threads_per_program:
        raise InvalidModule(
            f"kernel '{kernel.name}' has programs of {kernel.max_flat_workgroup_size} threads, the device's have "
            f"{properties.max_threads_per_program} at most: reduce num_warps"
        )
    return lds


def required_bytes(kernel: Kernel) -> int:
    """The least size of an argument block in bytes: without the two scratch pointers that Triton's lowering appends.

    Callers of the device's hook pack only the arguments that the kernel's author declared.
    """
    explicit = kernel.explicit_arguments
    if len(explicit) >= 2 and all(argument.value_kind == "global_buffer" for argument in explicit[-2:]):
        explicit = explicit[:-2]
    return max((argument.offset + argument.size for argument in explicit), default=0)

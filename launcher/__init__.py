"""From a Triton signature to a kernel's argument block and a launch.

`Signature` flattens the arguments that Triton passes. `ArgLayout` is the layout of the packed block. Three launchers
send the block to a device: `PackedLauncher` (native, nothing to compile), `GeneratedLauncher` (C++ generated for each
signature) and `PythonLauncher` (for a device with only a Python hook). `CheckedLauncher` is a packed launcher that
passes the bounds of arguments to kernels. A `Guard` redirects launches whose indices may overflow to another version of
the kernel.
"""

from typing import TYPE_CHECKING

from triton_porting_kit.on_demand import names_of

if TYPE_CHECKING:
    from triton_porting_kit.abi.launching import LAUNCH_ERRORS
    from triton_porting_kit.launcher.build import BuildOptions
    from triton_porting_kit.launcher.checked import CheckedLauncher, own_memory
    from triton_porting_kit.launcher.code_objects import check_kernel_arguments
    from triton_porting_kit.launcher.codegen import RuntimeSymbol, generate_source
    from triton_porting_kit.launcher.entry import LaunchEntry
    from triton_porting_kit.launcher.generated import GeneratedLauncher
    from triton_porting_kit.launcher.guard import Guard
    from triton_porting_kit.launcher.layout import ArgLayout, ArgSlot
    from triton_porting_kit.launcher.packed import PackedLauncher
    from triton_porting_kit.launcher.python import PythonLauncher
    from triton_porting_kit.launcher.signature import Argument, Parameter, Signature

__all__ = [
    "LAUNCH_ERRORS",
    "ArgLayout",
    "ArgSlot",
    "Argument",
    "BuildOptions",
    "CheckedLauncher",
    "GeneratedLauncher",
    "Guard",
    "LaunchEntry",
    "PackedLauncher",
    "Parameter",
    "PythonLauncher",
    "RuntimeSymbol",
    "Signature",
    "check_kernel_arguments",
    "generate_source",
    "own_memory",
]

__getattr__ = names_of(
    __name__,
    {
        "ArgLayout": "launcher.layout",
        "ArgSlot": "launcher.layout",
        "Argument": "launcher.signature",
        "BuildOptions": "launcher.build",
        "CheckedLauncher": "launcher.checked",
        "GeneratedLauncher": "launcher.generated",
        "Guard": "launcher.guard",
        "LAUNCH_ERRORS": "abi.launching",
        "LaunchEntry": "launcher.entry",
        "PackedLauncher": "launcher.packed",
        "Parameter": "launcher.signature",
        "PythonLauncher": "launcher.python",
        "RuntimeSymbol": "launcher.codegen",
        "Signature": "launcher.signature",
        "check_kernel_arguments": "launcher.code_objects",
        "generate_source": "launcher.codegen",
        "own_memory": "launcher.checked",
    },
)

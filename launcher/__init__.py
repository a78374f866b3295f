"""From a Triton signature to a kernel's argument block and a launch.

`Signature` flattens the arguments that Triton passes. `ArgLayout` is the layout of the packed block. Three launchers
send the block to a device: `PackedLauncher` (native, nothing to compile), `GeneratedLauncher` (C++ generated for each
signature) and `PythonLauncher` (for a device with only a Python hook). `CheckedLauncher` is a packed launcher that
passes the bounds of arguments to kernels. A `Guard` redirects launches whose indices may overflow to another version of
the kernel.
"""

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

"""A NumPy interpreter of the structured form: an executable definition of each operation.

It shares the classes of the dialect with the compiler, and nothing with the lowering. So it is an independent reference
for the results of a kernel, and it finds accesses to memory that is not the kernel's.
"""

from .errors import At, BrokenPromise, KernelAssertion, NotInterpreted, OutOfBounds, WaitsForOthers
from .interpret import as_number, interpret
from .machine import Launch
from .memory import Memory
from .program import Kernel, Parameter, read_kernel
from .table import HANDLERS

__all__ = [
    "HANDLERS",
    "At",
    "BrokenPromise",
    "Kernel",
    "KernelAssertion",
    "Launch",
    "Memory",
    "NotInterpreted",
    "OutOfBounds",
    "Parameter",
    "WaitsForOthers",
    "as_number",
    "interpret",
    "read_kernel",
]

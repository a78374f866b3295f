"""A NumPy interpreter of the structured form: what each operation means, executed.

It shares the classes of the dialect with the compiler, and nothing with the lowering: so it is a second opinion on
what a kernel should do, and finds where one accesses memory that is not its own.
"""

from .errors import At, BrokenPromise, KernelAssertion, NotInterpreted, OutOfBounds, WaitsForOthers
from .interpret import interpret
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
    "interpret",
    "read_kernel",
]

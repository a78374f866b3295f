"""The permission that a process needs from its operating system to use the CPU's AMX tile registers."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import warnings

_SYS_ARCH_PRCTL = 158  # x86-64
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@functools.cache
def matrix_registers() -> bool:
    """Ask Linux, once per process, to let this process and its threads use AMX tile registers.

    A thread that uses them without permission is killed (Linux kernel documentation, arch/x86/xstate, "Using
    dynamically enabled XSTATE features in user space applications"). Forked processes inherit the permission. Returns
    False, with a warning that says why, if it is refused, for example by an older kernel or a sandbox.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0:
        return True
    warnings.warn(
        f"this CPU has AMX, but the operating system refuses its use: {os.strerror(ctypes.get_errno())}. Matrix "
        "products use AVX-512 instead; set TPK_CPU_WITHOUT=amx to go without this warning",
        RuntimeWarning,
        stacklevel=2,
    )
    return False

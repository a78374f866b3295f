"""The settings of the processes that measure: how many threads every library has, and which instructions."""

from __future__ import annotations

import os

#: Every library that brings threads of its own reads one of these when it is loaded.
THREAD_VARIABLES = ("TPK_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: The same instruction set for everyone: kernels, torch's own, oneDNN's and MKL's.
REDUCED_ENVIRONMENT = {
    "TPK_CPU_WITHOUT": "avx512,amx",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
#: glibc's allocator keeps what was freed: else results of some megabytes are mapped anew in each call, page by page, on
#: either side. PyTorch's guide to tuning asks for the same, by another allocator.
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 62)}


def environment(threads: int, reduced: bool) -> dict[str, str]:
    """That of a process that measures with a number of threads, and with AVX2 alone if `reduced`."""
    found = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    # torch.compile's compiler runs in this process: its pool would run beside what is timed.
    found |= {"TORCHINDUCTOR_COMPILE_THREADS": "1"} | ALLOCATOR
    return found | REDUCED_ENVIRONMENT if reduced else found

"""Triton's internals, where they differ by release or are no public interface: used from here only.

The names of all modules but `amd` are names of this package.
"""

from . import amd
from .autotuning import (
    asynchronous_compilation,
    autotuned_kernel,
    finished_kernel,
    may_compile_ahead,
    tuned_kernels,
)
from .caches import (
    artefact_folder,
    cache_root,
    forget_cache_folders,
    kernel_cache_folder,
    share_kernel_caches,
)
from .differences import descriptor_flags, negates_floats, reads_default_backend, unloads_modules
from .extras import provide_extra
from .front_end import (
    backend_stages,
    definition_line,
    fp_fusion,
    front_end_module,
    is_gluon,
    option_defaults,
    out_of_resources,
    unsupported_language,
)
from .kernels import (
    compile_again,
    forget_loaded_kernels,
    loaded_function,
    runtime_hooks,
    scratch_allocator,
    select_driver,
    watch_loaded_kernels,
    watched_compilations,
    wrap_launchers,
    wrapped_launchers,
)
from .modules import Contents, contents, generic_text, is_module, read_ttir, run_passes
from .overrides import MODULE_STAGES, OverrideReader, binary_stage_name, expect_override, inspect_stages
from .releases import TRIED, Release, UntriedReleaseWarning, check_release, release
from .triton_key import keep_triton_key, make_triton_key

__all__ = [
    "MODULE_STAGES",
    "TRIED",
    "Contents",
    "OverrideReader",
    "Release",
    "UntriedReleaseWarning",
    "amd",
    "artefact_folder",
    "asynchronous_compilation",
    "autotuned_kernel",
    "backend_stages",
    "binary_stage_name",
    "cache_root",
    "check_release",
    "compile_again",
    "contents",
    "definition_line",
    "descriptor_flags",
    "expect_override",
    "finished_kernel",
    "forget_cache_folders",
    "forget_loaded_kernels",
    "fp_fusion",
    "front_end_module",
    "generic_text",
    "inspect_stages",
    "is_gluon",
    "is_module",
    "keep_triton_key",
    "kernel_cache_folder",
    "loaded_function",
    "make_triton_key",
    "may_compile_ahead",
    "negates_floats",
    "option_defaults",
    "out_of_resources",
    "provide_extra",
    "read_ttir",
    "reads_default_backend",
    "release",
    "run_passes",
    "runtime_hooks",
    "scratch_allocator",
    "select_driver",
    "share_kernel_caches",
    "tuned_kernels",
    "unloads_modules",
    "unsupported_language",
    "watch_loaded_kernels",
    "watched_compilations",
    "wrap_launchers",
    "wrapped_launchers",
]

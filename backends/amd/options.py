"""Compile options of the AMD backend: defaults by architecture and release, and their ranges."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_porting_kit.backends.amd.targets import MOST_THREADS, Architecture
from triton_porting_kit.compiler import FP8_TYPES
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import amd_codegen, compat

HINTS = ("none", "attention", "memory-bound-attention")
"""Values of ``schedule_hint``, which may be joined by commas. Without effect since Triton 3.8."""

_MATRIX_SIZES = {"mfma": (0, 16, 32), "wmma": (0, 16)}
"""Values of ``matrix_instr_nonkdim``: rows and columns of a matrix instruction; 0 lets Triton choose."""

_FP8 = tuple(name for name in FP8_TYPES if name != "fp8e4b15")  # which no architecture has
_DEPRECATED_FP8 = ("fp8e4b8", "fp8e5b16")


def default_options(arch: Architecture) -> dict[str, Any]:
    """Every option of this backend, with its default for an architecture.

    Triton's settings for AMD (``knobs.amd``) are options here, so that they can be set per kernel and are part of the
    cache key.
    """
    knobs = amd_codegen.settings()
    newer = compat.amd.tunes_by_architecture()

    def setting(name: str, default: bool) -> bool:
        return default if knobs[name] is None else bool(knobs[name])

    async_copy = setting("use_async_copy", newer and arch.name in ("gfx950", "gfx1250"))
    return {
        "arch": arch.name,
        "warp_size": arch.warp_size,
        "num_warps": 4,
        "num_stages": 2,
        "waves_per_eu": 0,
        "matrix_instr_nonkdim": 0,
        "kpack": 1,
        "allow_flush_denorm": False,
        "wgp_cu_mode": "wgp",
        "schedule_hint": "none",
        "llvm_fn_attrs": "",
        "extern_libs": (),
        "supported_fp8_dtypes": tuple(sorted(_FP8)),
        "deprecated_fp8_dot_operand_dtypes": _DEPRECATED_FP8 if arch.name == "gfx950" else (),
        "default_dot_input_precision": "ieee",
        "allowed_dot_input_precisions": (
            ("bf16x3", "bf16x6", "ieee", "tf32") if arch.name == "gfx942" else ("bf16x3", "bf16x6", "ieee")
        ),
        "use_buffer_ops": setting("use_buffer_ops", True),
        "use_buffer_atomics": setting("use_buffer_atomics", True),
        "buffer_ops_analyze_small_tensor_range": setting("buffer_ops_analyze_small_tensor_range", False),
        "use_async_copy": async_copy,
        "use_block_pingpong": setting(
            "use_block_pingpong", arch.name == "gfx942" or (arch.name == "gfx950" and async_copy)
        ),
        "use_in_thread_transpose": setting(
            "use_in_thread_transpose",
            arch.name == "gfx942" or (newer and arch.name in ("gfx1100", "gfx1201")),
        ),
        "use_coexec_scheduler": setting("use_coexec_scheduler", newer and arch.name == "gfx1250"),
        "use_expert_scheduling": setting("use_expert_scheduling", newer and arch.name == "gfx1250"),
        "scalarize_packed_fops": setting("scalarize_packed_fops", False),
        "line_info": amd_codegen.line_info(),
    }


def complete(options: Any, arch: Architecture) -> None:
    """Check options and add those derived from them, for the tables of passes and the cache key.

    Raises `OptionError` for a value that the architecture, or this backend, does not support.
    """
    _check_workgroup(options, arch)
    _check_matrix(options, arch)
    _check_modes(options)
    hints = [hint for hint in options.schedule_hint.lower().split(",") if hint not in ("", "none")]
    values = {
        "triton_target": f"hip:{arch.name}",
        "rewrite_descriptors": not amd_codegen.has_tensor_copies(arch.name),
        "schedule_pingpong": options.use_block_pingpong and options.num_stages > 1,
        "first_hint": hints[0] if hints else "",
        "second_hint": hints[1] if len(hints) > 1 else "",
        "iterative_ilp": "memory-bound-attention" in hints and compat.amd.heeds_schedule_hints(),
        "llvm_fn_attrs": _attributes(options.llvm_fn_attrs),
        "extern_libs": _libraries(options.extern_libs),
    }
    if options.wgp_cu_mode == "cu" and "target-features" in dict(values["llvm_fn_attrs"]):
        raise OptionError(
            "llvm_fn_attrs sets 'target-features', and so does wgp_cu_mode 'cu'",
            remedy="add +cumode to the features in llvm_fn_attrs, and leave out wgp_cu_mode",
        )
    values["extern_libs_digests"] = tuple(_digest(path) for _, path in values["extern_libs"])
    options.__dict__.update(values)


def _check_workgroup(options: Any, arch: Architecture) -> None:
    most = MOST_THREADS // arch.warp_size
    if options.num_warps > most:
        raise OptionError(
            f"num_warps is {options.num_warps}: {options.num_warps * arch.warp_size} threads, and a workgroup of "
            f"{arch.name} has {MOST_THREADS} at most",
            remedy=f"give a power of 2 up to {most}",
        )
    if options.num_ctas != 1:
        raise OptionError(
            f"num_ctas is {options.num_ctas}: this backend launches no clusters of workgroups",
            remedy="leave num_ctas at 1",
        )
    _check_one_of("warp_size", options.warp_size, (arch.warp_size,), f" on {arch.name}")
    _check_range(
        "waves_per_eu", options.waves_per_eu, 0, arch.most_waves, f" on {arch.name} (0: LLVM decides)"
    )


def _check_range(name: str, value: Any, least: int, most: int, where: str = "") -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(f"{name} is {value!r}", remedy=f"give a whole number from {least} to {most}{where}")


def _check_one_of(name: str, value: Any, allowed: tuple[Any, ...], where: str = "") -> None:
    if isinstance(value, bool) or value not in allowed:
        raise OptionError(f"{name} is {value!r}", remedy=f"give one of {', '.join(map(str, allowed))}{where}")


def _check_matrix(options: Any, arch: Architecture) -> None:
    where = f" on {arch.name}, whose matrix instructions are {arch.matrix.upper()}"
    _check_one_of("matrix_instr_nonkdim", options.matrix_instr_nonkdim, _MATRIX_SIZES[arch.matrix], where)
    _check_one_of("kpack", options.kpack, (1, 2))
    if arch.name in ("gfx950", "gfx1250") and options.kpack != 1:
        warnings.warn(f"kpack is {options.kpack}: {arch.name} compiles with kpack 1", stacklevel=4)
        options.__dict__["kpack"] = 1


def _check_modes(options: Any) -> None:
    _check_one_of("wgp_cu_mode", options.wgp_cu_mode, ("wgp", "cu"))
    if not isinstance(options.schedule_hint, str):
        raise OptionError(
            f"schedule_hint is {options.schedule_hint!r}", remedy=f"give one of {', '.join(HINTS)}"
        )
    for hint in options.schedule_hint.lower().split(","):
        _check_one_of("schedule_hint", hint, ("", *HINTS))
    if amd_codegen.address_sanitizer():
        raise OptionError(
            "TRITON_ENABLE_ASAN is set: this backend has no address sanitizer",
            remedy="unset it, or use Triton's own AMD backend",
        )


def _attributes(given: Any) -> tuple[tuple[str, str], ...]:
    """LLVM attributes of the kernel, from ``name=value,name`` or from pairs."""
    if not isinstance(given, str):
        try:
            return tuple((str(name), str(value)) for name, value in given)
        except (TypeError, ValueError):
            raise OptionError(
                f"llvm_fn_attrs is {given!r}", remedy="give 'name=value,name', or pairs of name and value"
            ) from None
    pairs = (part.strip().partition("=") for part in given.split(",") if part.strip())
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _libraries(given: Mapping[str, str] | tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The user's bitcode libraries, then the device libraries, which cannot be replaced."""
    libraries = {str(name): str(path) for name, path in dict(given).items()}
    libraries.update(amd_codegen.device_libraries())
    return tuple(libraries.items())


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise OptionError(
            f"extern_libs names {path}: {error.strerror}",
            remedy="give files of LLVM bitcode that can be read",
        ) from error

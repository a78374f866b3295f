"""What the generated code depends on, apart from the kernel. It is part of every cache key."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from triton_porting_kit import abi


@functools.cache
def toolchain_versions() -> str:
    """Releases of the MLIR bindings and of LLVM, e.g. ``mlir 0.6.0, llvmlite 0.50.0 (LLVM 22.1.0)``."""
    from triton_porting_kit.toolchain import llvm, mlir_bindings  # not imported before a kernel is compiled

    return f"{mlir_bindings.version()}, llvmlite {llvm.version()}"


@functools.cache
def source_digest(package: str) -> str:
    """SHA-256 of the Python sources of an installed package, so that kernels of an edited compiler are not reused.

    The digest of the kit's compiler includes the ABI definitions that it reads.
    """
    from importlib.util import find_spec

    digest = hashlib.sha256()
    for each in (package, *([abi.__name__] if package == __package__ else [])):
        spec = find_spec(each)
        if spec is None or spec.submodule_search_locations is None:
            raise ValueError(f"{each} is not an importable package")
        for folder in spec.submodule_search_locations:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

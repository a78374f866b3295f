"""From a `@triton.jit` function to TTIR, on a machine without any GPU."""

from __future__ import annotations

from typing import Any

from triton._C.libtriton import ir as triton_ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from triton_porting_kit.compiler.ttir import optimize
from triton_porting_kit.toolchain import compat

_TARGET = GPUTarget("cuda", 90, 32)


def ttir_module(
    kernel: Any,
    signature: dict[str, str],
    constexprs: dict[str, Any] | None = None,
    optimized: bool = True,
    target: GPUTarget = _TARGET,
) -> tuple[Any, Any]:
    """(module, context) of a kernel whose other parameters are constexprs; pointers are 16-byte aligned."""
    constexprs = constexprs or {}
    full = {name: signature.get(name, "constexpr") for name in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(kernel.arg_names) if full[n][0] == "*"}
    source = ASTSource(kernel, full, constexprs=constexprs, attrs=aligned)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    if optimized:
        optimize(module)
    return module, context


def ttir_text(kernel: Any, signature: dict[str, str], **constexprs: Any) -> str:
    """Generic text of the optimised TTIR of a kernel."""
    module, _context = ttir_module(kernel, signature, constexprs)
    return compat.generic_text(module)

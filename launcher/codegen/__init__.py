"""Generated C++ launch code: readable, for one signature; a starting point for vendors with a C runtime."""

from triton_porting_kit.launcher.codegen.source import RuntimeSymbol, generate_source

__all__ = ["RuntimeSymbol", "generate_source"]

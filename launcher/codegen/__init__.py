"""Generated C++ launch code: readable, of one signature, and what a vendor with a C runtime starts from."""

from triton_porting_kit.launcher.codegen.source import RuntimeSymbol, generate_source

__all__ = ["RuntimeSymbol", "generate_source"]

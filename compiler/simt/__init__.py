"""SIMT: the loops of a program distributed over the work-items of a work-group."""

from triton_porting_kit.compiler.simt.module import distribute

__all__ = ["distribute"]

"""Judging what was compiled for AMD's GPUs, where no GPU is: a code object is read, disassembled and checked.

What is judged is known by its content (an ELF file of machine AMDGPU) and by its target's architecture, never by the
backend that made it. `judge` is the way in.
"""

from triton_porting_kit.conformance.code_objects.judging import is_judged, judge

__all__ = ["is_judged", "judge"]

"""Judges binaries for AMD GPUs without a GPU: reads, disassembles and checks code objects.

Code objects are recognized by their content (an ELF file of machine AMDGPU) or by the target's architecture, not by the
backend. The entry point is `judge`.
"""

from triton_porting_kit.conformance.code_objects.judging import is_judged, judge

__all__ = ["is_judged", "judge"]

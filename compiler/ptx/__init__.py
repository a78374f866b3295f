"""Inline PTX: the instructions that kernels use most, as operations of the structured form.

`table` has the instructions with their meaning, `parser` reads the text of an assembly block, and `machine` runs its
statements on registers whose contents are values of the structured form.
"""

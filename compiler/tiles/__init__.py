"""From the structured form to one in which tiles lie in a chip's local memories (docs/npu-compiler.md).

Each module is a pass, or what several passes share.
"""

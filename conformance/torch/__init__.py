"""The level `torch`: PyTorch's operators and models on the torch device of a backend.

Modules of this package import torch in functions only: the rest of the suite works without it.
"""

"""The ttir stage: Triton's own clean-up of a kernel before it is imported."""

from .passes import optimize

__all__ = ["optimize"]

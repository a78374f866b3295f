"""The ``linalg`` form: kernels in upstream dialects only, as compilers of NPUs take them (docs/linalg.md)."""

from .conventions import CONVENTIONS, Convention
from .stages import compile_linalg, linalg_pipeline, linalg_stage

__all__ = ["CONVENTIONS", "Convention", "compile_linalg", "linalg_pipeline", "linalg_stage"]

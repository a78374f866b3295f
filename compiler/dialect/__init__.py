"""The structured form's own operations: one class for each. The table in the docs is generated from them."""

from .registry import OPERATIONS
from .schema import Op, Trait
from .upstream import ELEMENTWISE, TRAITS, UPSTREAM, having

__all__ = ["ELEMENTWISE", "OPERATIONS", "TRAITS", "UPSTREAM", "Op", "Trait", "having"]

"""The structured form: tiles, base pointers, strides and bounds instead of tensors of pointers."""

from .importer import import_ttir

__all__ = ["import_ttir"]

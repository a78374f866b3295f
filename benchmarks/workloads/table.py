"""All workloads."""

from __future__ import annotations

from . import attention, indexing, losses, products, quantised, rows
from .work import Workload

MODULES = (rows, losses, indexing, quantised, products, attention)


def workloads() -> list[Workload]:
    """All workloads, in the order of the report."""
    return [workload for module in MODULES for workload in module.workloads()]

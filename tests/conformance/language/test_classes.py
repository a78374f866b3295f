"""Each class of values that a type has meets each operation, or there is a reason why not."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from triton_porting_kit.conformance.language import OPS, classes
from triton_porting_kit.conformance.language.classes import (
    BY_CLASS,
    CLASSES,
    ROWS_BY_CLASS,
    by_class,
    classes_in,
)
from triton_porting_kit.conformance.language.table import Op
from triton_porting_kit.conformance.types import FLOATS, INTEGERS, KINDS, Kind

FAMILIES = (
    "dot_scaled*", "dot*", "sum*", "max*", "min*", "argmax*", "argmin*", "reduce*", "cumsum*", "cumprod*", "scan*",
    "topk*", "atomic_add*", "atomic_xor*", "atomic_max*", "atomic_min*",
)  # fmt: skip
"""Operations that are tried as one: a class has to meet one of each."""
_FINITE = ("-0", "denormal", "infinity", "-infinity", "NaN", "the largest number", "the lowest number")
_WHOLE = tuple(c.name for c in CLASSES if c.types(KINDS["i32"]) and c.name != "0")
EXEMPT: dict[str, tuple[tuple[str, ...], str]] = {
    "control-flow-and-functions/*": ((*_FINITE, *_WHOLE), "are about the flow; what they compute is tried above"),
    "random-numbers/*": (("0", *_WHOLE), "take seeds and offsets"),
    "shapes/arange": (_WHOLE, "takes no operand"),
    "shapes/swizzle2d": (_WHOLE, "takes numbers of tiles"),
    "shapes/full*": ((*_FINITE, *_WHOLE), "take no operand"),
    "shapes/zeros": ((*_FINITE, *_WHOLE), "takes no operand"),
    "memory/load_by_index_type": (("0", *_WHOLE), "takes indices into 256 elements"),
    "sorting-and-gathering/gather_by": (_WHOLE, "takes indices into 256 elements"),
    "sorting-and-gathering/histogram*": (_WHOLE, "takes numbers of bins"),
    "atomics/atomic_poll": (_WHOLE, "waits for one number"),
    "atomics/atomic_*_raced": ((*_FINITE, *_WHOLE), "count, so that an update that is lost shows; values are tried above"),
    "large-tiles/*": ((*_FINITE, *_WHOLE), "are about the number of elements; values are tried above"),
    "atomics/atomic_cas": ((*_FINITE, *_WHOLE), "compares bits, on CUDA and here; NaN and zeros have several patterns"),
    "atomics/atomic_m*": (("0", "-0", "NaN", "infinity", "-infinity"), "leave open which zero is larger, and what NaN does"),
    "conversions/bitcast_*": (("NaN",), "keep bits of NaN that the host does not keep"),
    "matrix-products/dot*": (
        ("denormal", "the largest number", "the lowest number", "the lowest integer"),
        "may be flushed, or overflow while they are summed, in any matrix unit",
    ),
    "matrix-products-with-scales/*": (
        ("infinity", "-infinity", "NaN", "the largest number", "the lowest number"),
        "overflow while they are scaled",
    ),
    "reductions/reduce*": (("-0", "denormal", "infinity", "-infinity", "NaN", "the largest number", "the lowest number"),
        "compare as the operators do, which are tried above"),
    "reductions/m*": (("denormal", "the largest number", "the lowest number"), "of 8 bits are ordered as others are"),
    "scans/cumprod*": ((*_FINITE, "0", *_WHOLE), "multiply as scan_product does"),
    "scans/scan*": (_FINITE, "compare as the operators do, which are tried above"),
}  # fmt: skip
"""Classes that operations do without, by pattern of section and name, and why."""


def _slug(section: str) -> str:
    return section.lower().replace(" ", "-")


def _family(op: Op) -> str:
    return next((f for f in FAMILIES if fnmatch.fnmatchcase(op.name, f)), op.name)


def _met(op: Op, kind: Kind, wanted: set[str]) -> Iterator[str]:
    """Classes of a type that meet an operation, as operands or in what it changes, until there are all wanted."""
    for case in op.cases():
        if case.kind is kind and wanted:
            work = case.work()
            arrays = [values for values, own in work.inputs if own is kind]
            arrays += [r.initial for r in work.results if r.initial is not None and r.kind is kind]
            for values in arrays:
                found = classes_in(np.asarray(values), kind)
                wanted -= found
                yield from found


@pytest.mark.parametrize("section", sorted({op.section for op in OPS}))
def test_each_class_meets_each_operation(section: str) -> None:
    met: dict[tuple[str, str], set[str]] = defaultdict(set)
    for op in OPS:
        if op.section == section:
            for name in op.types:
                kind = KINDS[name]
                wanted = {c.name for c in CLASSES if c.types(kind)} - met[_family(op), name]
                met[_family(op), name] |= set(_met(op, kind, wanted))
    missing = []
    for (family, name), found in sorted(met.items()):
        exempt = set()
        for pattern, (names, _) in EXEMPT.items():
            if fnmatch.fnmatchcase(f"{_slug(section)}/{family}", pattern):
                exempt |= set(names)
        wanted = {c.name for c in CLASSES if c.types(KINDS[name])}
        missing += [f"{family}-{name}: {c}" for c in sorted(wanted - found - exempt)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS], ids=str)
def test_tiles_by_class_have_all_classes_each_in_lines_of_its_own(kind: Kind) -> None:
    for shape in (*BY_CLASS, ROWS_BY_CLASS):
        (tile,) = by_class((kind,), shape)
        assert tile.shape == shape.extents
        lines = tile if shape.extents[1] == 32 else tile.T
        want = {c.name for c in CLASSES if c.types(kind)}
        assert classes_in(tile, kind) == want
        whole = {str(line[0]) for line in lines if len({str(v) for v in line}) == 1}
        ends = (
            (np.nan, np.inf, -np.inf, kind.largest, -kind.largest, -0.0)
            if kind.is_float
            else (kind.lowest, kind.highest)
        )
        assert {str(np.array(v, kind.host)) for v in ends} <= whole


def test_classes_are_told_apart() -> None:
    fp32, i8 = KINDS["fp32"], KINDS["i8"]
    assert classes_in(np.array([1e-40], np.float32), fp32) == {"denormal"}
    assert classes_in(np.array([-0.0], np.float32), fp32) == {"-0"}
    assert classes_in(np.array([np.finfo(np.float32).max], np.float32), fp32) == {"the largest number"}
    assert classes_in(np.array([-128], np.int8), i8) == {"the lowest integer", "a power of two"}
    assert classes_in(np.array([127], np.int8), i8) == {"the largest integer", "a power of two - 1"}
    assert classes_in(np.array([1.5, 3.0], np.float32), fp32) == frozenset()
    assert len({c.name for c in classes.CLASSES}) == len(classes.CLASSES)

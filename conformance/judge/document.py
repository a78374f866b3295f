"""Writes, reads and verifies a folder of evidence: ``judge.json``, the kept arrays and the candidate."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.judge.errors import EvidenceError
from triton_porting_kit.conformance.judge.findings import findings, time_of, verdict
from triton_porting_kit.conformance.judge.judging import FORMAT, Kept
from triton_porting_kit.conformance.types import Array
from triton_porting_kit.untrusted import Folder

NAME = "judge.json"
ARRAYS = "arrays.npz"
CANDIDATE = "candidate.py"
_UNPACKED_BYTES = 2 << 30
_DOCUMENT_BYTES, _ARRAY_BYTES, _SOURCE_BYTES = 64 << 20, 1 << 30, 4 << 20


def write(folder: Path, evidence: Mapping[str, Any], kept: Kept, candidate: bytes) -> None:
    """Write a folder of evidence. Raises `EvidenceError`."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **kept.arrays)  # type: ignore[arg-type]
    document = {**plain(evidence), "arrays_sha256": hashlib.sha256(buffer.getvalue()).hexdigest()}
    document["digest"] = digest(document)
    with Folder(folder, EvidenceError, make=True) as place:
        place.write(CANDIDATE, candidate)
        place.write(ARRAYS, buffer.getvalue())
        place.write(NAME, (json.dumps(document, indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Convert a value to JSON types. Numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def digest(document: Mapping[str, Any]) -> str:
    """The digest of a document without its digest field. It detects accidental changes; it is not a signature."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def disagreements(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Read a document and list its claims that do not follow from its evidence. Raises `EvidenceError`."""
    folder = path if path.is_dir() else path.parent
    with Folder(folder, EvidenceError) as place:
        data = untrusted.parse_json(place.read(NAME, _DOCUMENT_BYTES), folder / NAME, EvidenceError)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise EvidenceError(f"{folder / NAME} is not evidence in this kit's format {FORMAT}")
        raw = place.read(ARRAYS, _ARRAY_BYTES)
        candidate = place.read(CANDIDATE, _SOURCE_BYTES)
    try:
        found = list(_wrong(data, raw, candidate))
    except EvidenceError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        OSError,
        MemoryError,
    ) as error:
        raise EvidenceError(f"{folder / NAME} is damaged: {type(error).__name__}: {error}") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise EvidenceError(f"{folder / NAME} is damaged: {type(error).__name__}: {error}") from error
    return data, found


def _wrong(data: Mapping[str, Any], raw: bytes, candidate: bytes) -> Iterator[str]:
    computed = plain(findings(data))
    if data["findings"] != computed:
        yield f"it claims the findings {_codes(data['findings'])}; the evidence gives {_codes(computed)}"
    if data["verdict"] != verdict(computed):
        yield f"it claims the verdict {data['verdict']!r}; the evidence gives {verdict(computed)!r}"
    if data["time"] != plain(time_of(data)):
        yield "its times do not follow from the times of the calls"
    if data["candidate"]["sha256"] != hashlib.sha256(candidate).hexdigest():
        yield f"{CANDIDATE} is not the candidate that was judged"
    if data["arrays_sha256"] != hashlib.sha256(raw).hexdigest():
        yield f"{ARRAYS} is not what was written"
    else:
        yield from _compared(data, raw)
    if data["digest"] != digest(data):
        yield "the digest does not match the content: the document was changed afterwards"


def _compared(data: Mapping[str, Any], raw: bytes) -> Iterator[str]:
    """Compare the kept results again."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        if sum(item.file_size for item in archive.infolist()) > _UNPACKED_BYTES:
            raise EvidenceError(f"{ARRAYS} unpacks to more than the limit of {_UNPACKED_BYTES:,} bytes")
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        for name in arrays.files:
            number, position, what = name.split(".")
            if what != "actual":
                continue
            actual, expected = arrays[name], arrays[f"{number}.{position}.expected"]
            key = f"{number}.{position}.allowed"
            differ = _differ(actual, expected, arrays[key] if key in arrays.files else None)
            claimed = data["calls"][int(number)]["comparisons"][int(position)]["differ"]
            if differ != claimed:
                yield f"call {number}, result {position}: {claimed} elements are claimed to differ; {differ} do"


def _differ(actual: Array, expected: Array, allowed: Array | None) -> int:
    if actual.shape != expected.shape:
        return max(int(expected.size), 1)
    wide, exact = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    with np.errstate(all="ignore"):
        near = (actual == expected) | (np.isnan(wide) & np.isnan(exact))
        if allowed is not None:
            near |= np.abs(wide - exact) <= allowed
            # Expected values beyond the range of the type may be infinity.
            near |= np.isinf(wide) & (np.sign(wide) == np.sign(exact)) & (np.abs(exact) > _largest(actual))
        else:
            near &= ~((actual == 0) & (np.signbit(wide) != np.signbit(exact)))
    return int(np.sum(~near))


def _largest(actual: Array) -> float:
    return float(np.finfo(actual.dtype).max) if actual.dtype.kind == "f" else np.inf


def _codes(found: Any) -> str:
    return ", ".join(item["code"] for item in found) or "none"

"""`Record`: the result of one check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.status import Evidence, Status, declared


@dataclass(frozen=True)
class Listing:
    """An entry of the profile that names a check."""

    list: str
    """``unsupported``, ``expected_failures`` or ``waivers``."""
    pattern: str
    reason: str
    link: str = ""


@dataclass(frozen=True)
class Record:
    """A check's status, and the data that it is computed from. `to_json` and `from_json` are inverse."""

    name: str
    level: str
    requirement: str
    seconds: float
    seed: int
    evidence: list[Evidence] = field(default_factory=list)
    listing: Listing | None = None

    @property
    def status(self) -> Status:
        return declared(self.evidence, self.listing.list if self.listing else None)

    @property
    def stage(self) -> str:
        """The stage at which it failed, see `triton_porting_kit.conformance.stages`; empty if it did not fail."""
        for item in self.evidence:
            if item["kind"] in ("error", "process", "harness"):
                return str(item.get("stage", "harness"))
            if item["kind"] == "comparison" and item["differ"]:
                return "wrong result"
            if item["kind"] == "upstream":
                return "upstream" if self.level == "public" else "torch"
            if item["kind"] == "expectation" and not item["holds"]:
                return str(item.get("stage", "wrong result"))
        return ""

    @property
    def message(self) -> str:
        """What is wrong, in one or a few lines; empty if nothing is."""
        for item in self.evidence:
            match item["kind"]:
                case "error" | "harness":
                    return f"{item['type']}: {item['message']}"
                case "process":
                    return str(item["message"])
                case "upstream":
                    return f"{item['what']}: {item['message']}"
                case "comparison" if item["differ"]:
                    return f"{item['what']}: {item.get('message', '')}"
                case "expectation" if not item["holds"]:
                    return f"{item['what']}{': ' + item['message'] if item.get('message') else ''}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON types. Status, stage and message are included for readers."""
        return {
            **asdict(self),
            "status": str(self.status),
            "stage": self.stage,
            "message": self.message,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Inverse of `to_json`. Raises `ValueError`, `TypeError`, `KeyError` or `AttributeError` for invalid data."""
        listing = data.get("listing")
        if not math.isfinite(data["seconds"]):
            raise ValueError(f"a check of {data['seconds']} seconds")
        return cls(
            name=data["name"],
            level=data["level"],
            requirement=data["requirement"],
            seconds=data["seconds"],
            seed=data["seed"],
            evidence=list(data["evidence"]),
            listing=Listing(**listing) if listing else None,
        )

    @classmethod
    def of(
        cls, check: Check, evidence: list[Evidence], seconds: float, seed: int, listing: Listing | None
    ) -> Record:
        """Create the record of a check that ran."""
        return cls(check.name, check.level, check.requirement, seconds, seed, evidence, listing)

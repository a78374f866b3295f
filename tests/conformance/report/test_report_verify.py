"""`verify` against reports that were tampered with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from report_runs import KERNELS, error, every_status, everything, metadata, record, report, wrong

from triton_porting_kit.conformance.profile import Capabilities, Profile
from triton_porting_kit.conformance.record import Listing
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.verify import disagreements
from triton_porting_kit.conformance.stress.checks import programs

Data = dict[str, Any]
HONEST = document.document_of(report(every_status(), complete=False))


def check_of(data: Data, status: str) -> Data:
    """The first check with a status."""
    found: Data = next(check for check in data["checks"] if check["status"] == status)
    return found


def test_honest_reports_agree() -> None:
    assert disagreements(HONEST) == []
    assert disagreements(document.document_of(report(everything()))) == []
    assert disagreements(document.document_of(report([]))) == []


def flip_status(data: Data) -> None:
    check_of(data, "fail")["status"] = "pass"


def remove_check(data: Data) -> None:
    data["checks"].remove(check_of(data, "fail"))


def remove_item(data: Data) -> None:
    check_of(data, "crash")["evidence"].clear()


def mend_comparison(data: Data) -> None:
    item = check_of(data, "fail")["evidence"][-1]
    item["differ"] = 0


def break_comparison(data: Data) -> None:
    check_of(data, "pass")["evidence"][0] |= {**wrong(), "differ": 99}


def hide_traceback(data: Data) -> None:
    item = next(i for check in data["checks"] for i in check["evidence"] if "traceback" in i)
    item["traceback"] = "nothing to see"


def invent_listing(data: Data) -> None:
    entry = {"list": "waivers", "pattern": "language/*", "reason": "trust me", "link": ""}
    check_of(data, "fail") | {"listing": entry}
    check_of(data, "fail")["listing"] = entry


def drop_listing(data: Data) -> None:
    check_of(data, "waived")["listing"] = None


def change_list(data: Data) -> None:
    check_of(data, "expected failure")["listing"]["list"] = "waivers"


def add_to_the_profile(data: Data) -> None:
    entry = {"pattern": "language/arithmetic/add-fp32-*", "reason": "later", "link": ""}
    data["run"]["profile"]["waivers"].append(entry)


def improve_verdict(data: Data) -> None:
    data["verdict"] = "pass"


def improve_level(data: Data) -> None:
    level = next(level for level in data["levels"] if level["level"] == "language")
    level["verdict"] = "pass with exceptions"


def hide_missing(data: Data) -> None:
    level = next(level for level in data["levels"] if level["level"] == "language")
    level["missing"].clear()
    level["missing_count"] = 0


def lower_the_bar(data: Data) -> None:
    data["run"]["device"]["memory"] = "torch:cuda"


def drop_level(data: Data) -> None:
    data["levels"].pop()


def double_check(data: Data) -> None:
    data["checks"].append(copy.deepcopy(check_of(data, "pass")))


def change_counts(data: Data) -> None:
    del data["counts"]["harness error"]


def change_seed(data: Data) -> None:
    data["run"]["seed"] = 7


def move_level(data: Data) -> None:
    check_of(data, "fail")["level"] = "stress"


def change_message(data: Data) -> None:
    check_of(data, "timeout")["message"] = "it was slow"


def claim_complete(data: Data) -> None:
    data["complete"] = True


TAMPERINGS: list[tuple[Callable[[Data], None], str]] = [
    (flip_status, "it claims the status 'pass'; its evidence gives 'fail'"),
    (remove_check, "the run claims counts ="),
    (remove_item, "it claims the status 'crash'; its evidence gives 'harness error'"),
    (mend_comparison, "it claims the status 'fail'; its evidence gives 'pass'"),
    (break_comparison, "99 elements differ, but there are only 8"),
    (hide_traceback, "the digest does not match the content"),
    (invent_listing, "the profile has no such entry"),
    (drop_listing, "the profile lists it under waivers, but its record does not"),
    (change_list, "it claims to be listed under waivers"),
    (add_to_the_profile, "the profile lists it under waivers, but its record does not"),
    (improve_verdict, "the run claims verdict ="),
    (improve_level, "level language claims verdict ="),
    (hide_missing, "level language claims missing_count = 0"),
    (lower_the_bar, "level runtime claims mandatory ="),
    (drop_level, "level stress is missing"),
    (double_check, "there are 2 records of it"),
    (change_counts, "the run claims counts ="),
    (change_seed, "is not derived from the run's, 7"),
    (move_level, "it is counted under the level stress"),
    (change_message, "it claims the message 'it was slow'"),
    (claim_complete, "the run claims complete = true"),
]


@pytest.mark.parametrize(("tamper", "finding"), TAMPERINGS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("sealed", [False, True])
def test_tampering_is_found(tamper: Callable[[Data], None], finding: str, sealed: bool) -> None:
    """Even where who tampered computed the digest again, but for text that nothing depends on."""
    data = copy.deepcopy(HONEST)
    tamper(data)
    if sealed and tamper is not hide_traceback:
        data["digest"] = document.digest(data)
    document.validate(data, "the report")
    found = disagreements(data)
    assert any(finding in line for line in found), found
    assert sealed or any("digest" in line for line in found)


def test_a_pass_without_a_mandatory_check_is_found() -> None:
    data = document.document_of(report(everything("kernels"), **KERNELS))
    gone = data["checks"].pop(50)
    data["counts"]["pass"] -= 1
    level = data["levels"][3]
    level["counts"]["pass"] -= 1
    data["digest"] = document.digest(data)
    found = disagreements(data)
    assert any(line.startswith("level kernels claims verdict") for line in found)
    assert any(gone["name"] in line for line in found)


def test_listings_by_capabilities_follow_from_them() -> None:
    """From what each check of the catalogue needs."""
    reason = "the profile does not claim type fp64"
    listing = Listing("unsupported", "capabilities", reason)
    names = [f"language/arithmetic/add-{kind}-tile_1" for kind in ("fp32", "fp64")]
    claims = {"types": ["fp32"], "atomics": None, "features": None, "maximum_tile": None}
    profile = {**metadata()["profile"], "capabilities": claims}

    def found(*listings: Listing | None) -> list[str]:
        records = [record(n, error(), listing=own) for n, own in zip(names, listings, strict=True)]
        return disagreements(document.document_of(report(records, profile=profile, complete=False)))

    assert found(None, listing) == []
    assert found(listing, listing) == [
        f"{names[0]}: it claims to be listed under unsupported, as 'capabilities'; the profile has no such entry"
    ]
    assert found(None, None) == [
        f"{names[1]}: the profile lists it under unsupported, but its record does not"
    ]


def test_listings_of_random_programs_follow_from_what_these_need() -> None:
    """As the check of the run has it that the report is of."""
    claims = {"types": [], "atomics": None, "features": None, "maximum_tile": None}
    profile = {**metadata()["profile"], "capabilities": claims}
    check = next(iter(programs(1, metadata()["seed"])))
    listing = Profile(capabilities=Capabilities(types=())).listing(check)
    assert listing is not None

    def found(own: Listing | None) -> list[str]:
        records = [record(check.name, error(), listing=own)]
        return disagreements(document.document_of(report(records, profile=profile, complete=False)))

    assert found(listing) == []
    assert found(None) == [f"{check.name}: the profile lists it under unsupported, but its record does not"]


def test_capabilities_that_claim_everything_list_nothing() -> None:
    data = copy.deepcopy(HONEST)
    entry = {"list": "unsupported", "pattern": "capabilities", "reason": "no fp32", "link": ""}
    check_of(data, "fail")["listing"] = entry
    assert any("the profile has no such entry" in line for line in disagreements(data))


def test_other_versions_are_not_verified() -> None:
    data = copy.deepcopy(HONEST)
    data["run"]["suite_version"] = "99"
    with pytest.raises(ReportError, match="version 99 of the suite"):
        disagreements(data)


def test_other_lists_are_not_verified() -> None:
    data = copy.deepcopy(HONEST)
    data["mandatory_digest"] = data["digest"]
    with pytest.raises(ReportError, match=r"other mandatory lists of version 1.* commit 0123"):
        disagreements(data)

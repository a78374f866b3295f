"""Evidence: what is written agrees with itself, and what is changed afterwards does not."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judge_helpers import HERE, judged

from triton_porting_kit.conformance.judge import document
from triton_porting_kit.conformance.judge.errors import EvidenceError
from triton_porting_kit.conformance.judge.process import Answer, CandidateProcess, Nursery

WRONG = (HERE / "cheats" / "first_half.py").read_bytes()


@pytest.fixture(scope="module")
def written(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    evidence, kept = judged(nursery, WRONG, "softmax", quick=True)
    document.write(folder, evidence, kept, WRONG)
    return folder


def changed(written: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> list[str]:
    """What is said of evidence in which something was changed, with another digest."""
    for name in (document.ARRAYS, document.CANDIDATE):
        (tmp_path / name).write_bytes((written / name).read_bytes())
    data = json.loads((written / document.NAME).read_text())
    change(data)
    data["digest"] = document.digest(data)
    (tmp_path / document.NAME).write_text(json.dumps(data))
    return document.disagreements(tmp_path)[1]


def test_it_agrees(written: Path) -> None:
    data, found = document.disagreements(written)
    assert found == []
    assert data["verdict"] == "wrong", data["findings"]


def passed(data: dict[str, Any]) -> None:
    data["verdict"], data["findings"] = "right", []


def forgiven(data: dict[str, Any]) -> None:
    for call in data["calls"]:
        for item in call["comparisons"]:
            item["differ"] = 0
    passed(data)


def renamed(data: dict[str, Any]) -> None:
    data["candidate"]["sha256"] = "0" * 64


@pytest.mark.parametrize(
    ("change", "text"),
    [(passed, "findings"), (forgiven, "elements are claimed to differ"), (renamed, "not the candidate")],
)
def test_changes_are_found(
    change: Callable[[dict[str, Any]], None], text: str, written: Path, tmp_path: Path
) -> None:
    assert any(text in line for line in changed(written, tmp_path, change))


def test_a_digest_is_kept(written: Path, tmp_path: Path) -> None:
    assert changed(written, tmp_path, lambda data: None) == []
    text = (tmp_path / document.NAME).read_text().replace('"backend": "cpu"', '"backend": "gpu"')
    (tmp_path / document.NAME).write_text(text)
    assert any("digest" in line for line in document.disagreements(tmp_path)[1])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "calls": 3}'])
def test_damage_is_an_error_of_ours(content: str, tmp_path: Path) -> None:
    (tmp_path / document.NAME).write_text(content)
    for name in (document.ARRAYS, document.CANDIDATE):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(EvidenceError):
        document.disagreements(tmp_path)


def test_damaged_arrays_are_found(written: Path, tmp_path: Path) -> None:
    changed(written, tmp_path, lambda data: None)
    raw = (tmp_path / document.ARRAYS).read_bytes()
    (tmp_path / document.ARRAYS).write_bytes(raw[:-40])
    assert any("not what was written" in line for line in document.disagreements(tmp_path)[1])
    data = json.loads((tmp_path / document.NAME).read_text())
    data["arrays_sha256"] = hashlib.sha256(raw[:-40]).hexdigest()
    (tmp_path / document.NAME).write_text(json.dumps(data))
    with pytest.raises(EvidenceError, match="damaged"):
        document.disagreements(tmp_path)


def test_a_quick_judgement_repeats_suspicious_times(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other load on the machine interrupts the first timed calls after their last event."""
    call = CandidateProcess.call
    timed = 0

    def interrupted(self: CandidateProcess, *args: Any, check: bool, **options: Any) -> Answer:
        nonlocal timed
        answer = call(self, *args, check=check, **options)
        timed += not check
        if not check and timed <= 4:
            answer.said["wall"] += 0.02
            answer = dataclasses.replace(answer, window=answer.window + 0.02)
        return answer

    monkeypatch.setattr(CandidateProcess, "call", interrupted)
    evidence, _ = judged(nursery, WRONG, "softmax", quick=True)
    assert timed > 4
    assert evidence["verdict"] == "wrong", evidence["findings"]

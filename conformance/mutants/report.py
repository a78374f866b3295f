"""The report of a run, as JSON and as a Markdown page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from triton_porting_kit.conformance.mutants import verdict
from triton_porting_kit.conformance.mutants.campaign import Result
from triton_porting_kit.conformance.mutants.classes import class_of
from triton_porting_kit.conformance.mutants.no_behaviour import RULES
from triton_porting_kit.conformance.mutants.score import Score, alone
from triton_porting_kit.conformance.mutants.verdict import MEANING, Verdict

JSON, PAGE = "mutants.json", "mutants.md"
_OFTEN = 20


def write(result: Result, folder: Path) -> Path:
    """Write both files, and return the path of the page."""
    score = result.score
    (folder / JSON).write_text(
        json.dumps(
            {
                **result.about,
                "mutations": result.sites,
                "passed_over": result.passed_over,
                "wanted": result.wanted,
                "complete": result.complete,
                "counts": dict(score.counts),
                "score": {
                    name: {"part": p.part, "whole": p.whole, "interval": p.interval}
                    for name, p in (
                        ("levels", score.levels),
                        ("with_stress", score.with_stress),
                        ("reached", score.reached),
                        ("strict", score.strict),
                    )
                },
                "mutants": [
                    {**found.to_json(), "class": class_of(found.mutation.path)} for found in score.verdicts
                ],
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )
    page = folder / PAGE
    page.write_text("\n".join(_page(result)) + "\n", encoding="utf-8")
    return page


def summary(result: Result) -> list[str]:
    """The counts and scores, in a few lines."""
    score = result.score
    lines = [f"{name:<16} {score.counts[name]:>5}  {meaning}" for name, meaning in MEANING.items()]
    lines.append(f"score of the mandatory levels: {score.levels}")
    if result.about["effort"]["stress"]:
        lines.append(f"with stress: {score.with_stress}")
    lines.append(f"score of mutants whose lines checks run: {score.reached}")
    lines.append(f"strict (unobserved ones count against the suite): {score.strict}")
    if not result.complete:
        lines.append(
            f"not complete: {len(score.verdicts)} of {result.wanted} mutants were tried, perhaps not all with full "
            "effort; repeat the command to continue"
        )
    return lines


def _page(result: Result) -> Iterator[str]:
    score = result.score
    yield "# The suite on mechanical mutants\n"
    yield (
        f"{len(score.verdicts)} of the {result.sites} mutations of the sources ({result.about['sources']}), by seed "
        f"{result.about['seed']}. {result.passed_over} others compile to the same code as the original, or not at all, "
        "and were replaced by the next of the sample.\n"
    )
    yield "\n".join(f"    {line}" for line in summary(result)) + "\n"
    for key in ("class", "tree", "language", "operator"):
        yield from _table(score, key)
    yield "Not mutated, because it has no observable behaviour:\n"
    yield "\n".join(f"- {rule}" for rule in RULES) + "\n"
    for name in (
        verdict.MISSED,
        verdict.NOT_REACHED,
        verdict.STRESSED,
        verdict.UNOBSERVED,
        verdict.EQUIVALENT,
    ):
        chosen = [found for found in score.verdicts if found.verdict == name]
        if chosen:
            yield f"## {name.capitalize()}: {len(chosen)}\n"
            yield f"{MEANING[name][:1].upper()}{MEANING[name][1:]}.\n"
            for found in sorted(chosen, key=lambda found: (found.mutation.path, found.mutation.line)):
                yield from _mutant(found)
    yield "## Checks that catch mutants\n"
    first = alone(score.verdicts)
    yield f"{len(first)} checks were the first to catch a mutant. The most frequent:\n"
    yield from (f"- {count} {name}" for name, count in first.most_common(_OFTEN))
    sole = Counter(
        found.caught_by
        for found in score.verdicts
        if found.verdict == verdict.CAUGHT and not found.also and found.caught_by != "every check"
    )
    if result.about["effort"]["also"]:
        yield f"\n{len(sole)} checks caught a mutant that no other tried check caught."


def _table(score: Score, key: str) -> Iterator[str]:
    names = list(MEANING)
    yield f"| {key} | mutants | {' | '.join(names)} | score |"
    yield f"|---|{'---:|' * (len(names) + 1)}---|"
    for name, part in score.by(key).items():
        counts = " | ".join(str(part.counts[verdict]) for verdict in names)
        yield f"| {name} | {len(part.verdicts)} | {counts} | {part.levels} |"
    yield ""


def _mutant(found: Verdict) -> Iterator[str]:
    mutation = found.mutation
    facts = [f"{found.tried} of {found.reaching} units that run its lines were tried"]
    if found.programs:
        facts.append(
            f"{found.programs} programs, {found.running} known to run its lines, {found.other_code} compiled to "
            "different code"
        )
    if found.caught_by:
        facts.append(f"{found.caught_by}: {found.how} {found.stage} {found.message[:120]}".strip())
    if found.flaky:
        facts.append(f"failed once and passed when repeated: {', '.join(found.flaky)}")
    kind = f"{mutation.operator}, {class_of(mutation.path)}"
    yield f"`{mutation.path}:{mutation.line}` {kind}. {'; '.join(facts)}.\n"
    yield "```diff"
    yield from (line for line in found.diff.splitlines()[2:])
    yield "```\n"

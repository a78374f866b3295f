"""The summary of a run: failures in groups with a command that repeats one, verdicts, and the report's path."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from triton_porting_kit.conformance.command.progress import STYLES, counted, plain
from triton_porting_kit.conformance.levels import selecting
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.status import BAD, Status, Verdict
from triton_porting_kit.conformance.torch.fallbacks import shares

_GROUPS = 20
_WIDTH = 300


def show_failures(console: Console, records: Iterable[Record], rerun: Sequence[str]) -> None:
    """Print failures, grouped by similarity. `rerun`: the command that repeats a check, without its name."""
    groups: defaultdict[tuple[Status, str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.status in BAD:
            groups[record.status, record.stage, _essence(record.message)].append(record)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for (status, stage, _), members in ordered[:_GROUPS]:
        first = members[0]
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        where = f" [{stage}]" if stage else ""
        console.print(
            f"[{STYLES[status]}]{status}[/]{plain(where)} {plain(first.name)}{more}", highlight=False
        )
        console.print(f"    {plain(_shortened(first.message))}", highlight=False, soft_wrap=True)
        console.print(
            f"    rerun: {plain(' '.join([*rerun, *selecting(first.name)]))}",
            highlight=False,
            soft_wrap=True,
        )
        if replay := next((str(item["replay"]) for item in first.evidence if "replay" in item), ""):
            console.print(f"    replay: {plain(replay)}", highlight=False, soft_wrap=True)
    if len(ordered) > _GROUPS:
        console.print(f"... and {len(ordered) - _GROUPS} other kinds of failure: the report has them all")


def show_levels(console: Console, report: Report) -> None:
    """Print the verdicts of the levels and of the run."""
    selected = bool(report.options.get("select"))
    table = Table("level", "verdict", "checks", "missing", box=None, pad_edge=False)
    for level in report.levels:
        if level.run or (level.asked and level.mandatory and not selected):
            left_out = level.missing and not selected
            missing = f"{len(level.missing)} of {level.mandatory} mandatory" if left_out else ""
            counts = counted(Counter(level.counts)) if level.run else ""
            table.add_row(level.level, _styled(level.verdict), counts, missing)
    console.print(table)
    why = " (some checks were selected)" if selected and report.verdict is Verdict.INCOMPLETE else ""
    if report.compile_only:
        why += (
            f" (kernels were compiled for {plain(report.options.get('target') or 'a target')}, and not run)"
        )
    console.print(f"verdict: {_styled(report.verdict)}{why}", highlight=False)


def show_fallbacks(console: Console, records: Iterable[Record]) -> None:
    """Print how many operators and models ran without the CPU, where a torch device counts that."""
    found = ", ".join(f"{share.group} {share}" for share in shares(records))
    if found:
        console.print(f"without the CPU: {found}", highlight=False)


def _styled(verdict: Verdict) -> str:
    style = {Verdict.PASS: "green", Verdict.CONDITIONAL: "green", Verdict.FAIL: "bold red"}.get(
        verdict, "yellow"
    )
    return f"[{style}]{verdict}[/]"


def show_place(console: Console, folder: Path) -> None:
    """Print the path of the report."""
    html = folder / "report.html"
    console.print(f"report: {plain(html if html.is_file() else folder)}", highlight=False, soft_wrap=True)


def _essence(message: str) -> str:
    """The first line of a message with digits masked, to compare messages of different checks."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    return "".join("#" if letter.isdigit() else letter for letter in line)[:80]


def _shortened(message: str) -> str:
    text = message.strip()
    text = text if len(text) <= _WIDTH else f"{text[:_WIDTH]} ..."
    return "\n    ".join(text.split("\n"))

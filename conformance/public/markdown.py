"""What the parts of the page share: tables, and results that are not right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from triton_porting_kit.conformance.public.results import Result


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table, and an empty one."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(str(cell) for cell in row)} |"
    yield ""


def short(text: str) -> str:
    """A reason on one line of a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = f"{lines[0]} {lines[-1]}" if len(lines) > 1 else "".join(lines)
    return first[:300].replace("|", "\\|").replace("`", "'")


def not_right(results: Iterable[Result]) -> Iterator[str]:
    """A table of the results that are not right, with their reasons."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for result in results:
        if result.verdict != "right":
            key = (result.collection, result.entry, result.verdict, short(result.reason))
            groups.setdefault(key, []).append(result.variant)
    if not groups:
        yield "Nothing.\n"
        return
    yield from table(
        ("collection", "entry", "on", "verdict", "reason"),
        [
            (collection, f"`{entry}`", ", ".join(variants), verdict, reason)
            for (collection, entry, verdict, reason), variants in groups.items()
        ],
    )


def caught(results: Iterable[Result], where: str) -> Iterator[str]:
    """A list of the compile errors that packages caught, if there are any: those lost an optimization in silence."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for message in result.caught:
            groups.setdefault((result.collection, result.entry, short(message)), []).append(result.variant)
    if groups:
        yield f"Compile errors that packages caught{where}:\n"
        for (collection, entry, message), variants in groups.items():
            yield f"- {collection}, `{entry}` ({', '.join(dict.fromkeys(variants))}): {message}"
        yield ""

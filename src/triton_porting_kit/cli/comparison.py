"""The output of `tpk compare`: progress, the report at the end, and JSON."""

from __future__ import annotations

import json
import linecache
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

import triton_porting_kit
from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.compare.judging import FACTOR, Array, Element, Status
from triton_porting_kit.compare.locating import Cause
from triton_porting_kit.compare.session import Judged, Outcome, Request, room_is_used_up, run
from triton_porting_kit.errors import CaptureError, InsecureCacheError
from triton_porting_kit.untrusted import shown

FORMAT = 1
"""Version of the JSON."""
_EVERY_SECONDS = 10.0
"""The time between two progress lines if standard error is not a terminal."""
_STYLES = {
    Status.AGREES: "green",
    Status.DIFFERS: "bold red",
    Status.UNDECIDED: "yellow",
    Status.NOT_COMPARED: "dim",
}
_REASONS = 12
"""The number of reasons printed for launches that are not compared."""


def run_compare(request: Request, result: Path | None) -> int:
    """Run the command and return the exit status. Raises `UserError` if there was nothing to compare."""
    progress = _Progress()
    try:
        if result is not None:  # A file that cannot be written is reported now and not after hours.
            result.touch()
        outcome = run(request, progress)
    except (InsecureCacheError, CaptureError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
    finally:
        progress.end()
    found = _Report(request, outcome)
    if result is not None:
        result.write_text(json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    console = Console(highlight=False, soft_wrap=True)
    for line in found.lines():
        console.print(line)
    if not outcome.judged:
        raise UserError(
            f"{request.script} launched no kernel that tpk can see: it sees launches through Triton on a backend whose "
            "driver derives from triton_porting_kit.driver.adapter.TritonDriver"
            + (f"; the program ended with status {outcome.status}" if outcome.status else "")
        )
    if not any(one.judgement.status is not Status.NOT_COMPARED for one in outcome.judged):
        raise UserError("none of the launches could be compared")
    failed = outcome.status != 0 and not outcome.ended_early
    return 1 if outcome.wrong or failed else 0


class _Progress:
    """Progress on standard error: one line that is updated on a terminal, otherwise a line from time to time."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = (
            self._console.status("waiting for the first launch") if self._console.is_terminal else None
        )
        self._said = time.monotonic()
        if self._live is not None:
            self._live.start()

    def __call__(self, judged: Judged, outcome: Outcome) -> None:
        counts = outcome.counts
        text = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        line = f"launch {judged.number}, {escape(shown(judged.kernel))}: {text}"
        if self._live is not None:
            self._live.update(line)
        elif time.monotonic() - self._said > _EVERY_SECONDS:
            self._said = time.monotonic()
            self._console.print(line, soft_wrap=True)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()


class _Report:
    def __init__(self, request: Request, outcome: Outcome) -> None:
        self._request, self._outcome = request, outcome

    # --- text --------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """The lines of the report, with rich's markup."""
        outcome = self._outcome
        for judged in outcome.wrong:
            yield from self._wrong(judged)
            yield ""
        yield from self._not_compared()
        yield self._counts()
        if text := room_is_used_up(outcome):
            yield text
        yield from self._program()

    def _wrong(self, judged: Judged) -> Iterator[str]:
        manifest = judged.manifest
        assert manifest is not None
        total = len(self._outcome.judged)
        more = " so far" if self._outcome.ended_early else ""
        kernel = manifest.kernel
        place = f"{kernel.source_file}:{kernel.source_line}" if kernel.source_file else "source file unknown"
        yield (
            f"[bold red]launch {judged.number}[/] of {total}{more} [bold red]is wrong[/]: kernel "
            f"[bold]{_plain(judged.kernel)}[/], {_plain(place)}"
        )
        grid = " x ".join(map(str, manifest.grid))
        yield f"  backend {_plain(manifest.backend)}, grid {grid}"
        for array in judged.judgement.arrays:
            yield from _array(array)
        if judged.cause is not None:
            yield from _cause(judged.cause)
        if judged.folder is not None:
            folder = _plain(judged.folder)
            yield f"  recorded in {folder}"
            yield f"  run it again: tpk replay {folder}"

    def _not_compared(self) -> Iterator[str]:
        for status in (Status.UNDECIDED, Status.NOT_COMPARED):
            reasons = Counter(
                (one.kernel, one.judgement.reason)
                for one in self._outcome.judged
                if one.judgement.status is status
            )
            if not reasons:
                continue
            yield f"[{_STYLES[status]}]{status}[/]:"
            for (kernel, reason), count in reasons.most_common(_REASONS):
                times = "" if count == 1 else f" ({count} launches)"
                yield f"  {_plain(kernel)}{times}: {_plain(reason)}"
            if len(reasons) > _REASONS:
                yield f"  and {len(reasons) - _REASONS} more reasons; --json has all"

    def _counts(self) -> str:
        outcome = self._outcome
        counts = outcome.counts
        bits = sum(one.judgement.bits for one in outcome.judged)
        parts = [f"[{_STYLES[status]}]{counts[status]} {status}[/]" for status in Status if counts[status]]
        if counts[Status.AGREES]:
            parts[0] += f" ({bits} bit for bit)"
        number = len(outcome.judged)
        launches = "1 launch" if number == 1 else f"{number} launches"
        return f"{launches} in {outcome.seconds:.1f} s: {', '.join(parts) or 'nothing to compare'}"

    def _program(self) -> Iterator[str]:
        outcome = self._outcome
        if outcome.ended_early:
            yield "the program was stopped at this launch; --keep-going compares all launches"
        elif outcome.status < 0:
            yield f"the program was killed by {signal.Signals(-outcome.status).name}"
        elif outcome.status:
            yield f"the program ended with status {outcome.status}"

    # --- JSON --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        outcome = self._outcome
        return {
            "format": FORMAT,
            "kit": triton_porting_kit.__version__,
            "program": [str(self._request.script), *self._request.arguments],
            "program_status": outcome.status,
            "ended_early": outcome.ended_early,
            "seconds": round(outcome.seconds, 3),
            "factor": FACTOR,
            "counts": {str(status): outcome.counts[status] for status in Status},
            "launches": [_launch(one) for one in outcome.judged],
        }


def _array(array: Array) -> Iterator[str]:
    place = f"element [{array.first}]" if array.wrong == 1 else f"elements [{array.first}] to [{array.last}]"
    yield f"  {_plain(array.name)} ({_plain(array.type)}): {array.wrong:,} of {array.total:,} are wrong, {place}"
    for element in array.elements:
        yield f"    \\[{element.index}] {_values(element)}"
    if array.wrong > len(array.elements):
        yield "    ..."


def _values(element: Element) -> str:
    exact = f", float64 {element.float64}, allowed error {element.allowed}" if element.float64 else ", exact"
    return f"got {element.got}, reference {element.reference}{exact}"


def _cause(cause: Cause) -> Iterator[str]:
    if cause.program is not None:
        store = f", by {_plain(cause.store)}{_source_line(cause.store)}" if cause.store else ""
        yield f"  the first wrong element is stored by program {cause.program}{store}"
    for note in cause.notes:
        yield f"  {_plain(note)}"
    if cause.stage:
        yield f"  {_plain(cause.stage)}"
    if cause.operation is not None:
        found = cause.operation
        instead = f", which the backend replaced with {_plain(found.instead)}" if found.instead else ""
        place = f", {_plain(found.place)}{_source_line(found.place)}" if found.place else ""
        name = f"[bold]{_plain(found.name)}[/]{instead}"
        yield f"  the first operation of that program whose value differs: {name}{place}"
        index = ", ".join(map(str, _unravelled(found.element.index, found.shape)))
        where = f"element ({index}) of {found.shape}: " if found.shape else ""
        yield f"    {_plain(where)}{_values(found.element)}"
    elif cause.unknown:
        yield f"  the operation was not found: {_plain(cause.unknown)}"


def _unravelled(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(index, shape)) if shape else ()


def _source_line(place: str) -> str:
    file, _, line = place.rpartition(":")
    text = linecache.getline(file, int(line)).strip() if line.isdigit() else ""
    return f": {_plain(text)}" if text else ""


def _launch(judged: Judged) -> dict[str, Any]:
    judgement, manifest = judged.judgement, judged.manifest
    found: dict[str, Any] = {
        "number": judged.number,
        "kernel": judged.kernel,
        "status": str(judgement.status),
        "reason": judgement.reason,
        "identical": judgement.bits,
        "undecided_elements": judgement.undecided,
    }
    if manifest is not None:
        found |= {
            "file": manifest.kernel.source_file,
            "line": manifest.kernel.source_line,
            "grid": list(manifest.grid),
            "backend": manifest.backend,
        }
    if judgement.arrays:
        found["arrays"] = [asdict(array) for array in judgement.arrays]
    if judged.cause is not None:
        found["cause"] = asdict(judged.cause)
    if judged.folder is not None:
        found["capture"] = str(judged.folder)
    return found


def _plain(text: object) -> str:
    return escape(shown(text))

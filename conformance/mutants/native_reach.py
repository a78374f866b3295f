"""The lines of C++ that each group of checks and the corpus execute, measured with a gcov build."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from triton_porting_kit.conformance.mutants.baseline import LIMIT
from triton_porting_kit.conformance.mutants.client import Nursery, NurseryFailed, Server
from triton_porting_kit.conformance.mutants.native_build import (
    MODULES,
    BuildFailed,
    build_all,
    run_tool,
)
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.unit import Unit

DUMP = "tpk_write_counts"
"""The function of each instrumented module that writes its counts."""
_BESIDE = f"""extern "C" void __gcov_dump(void);
extern "C" __attribute__((visibility("default"))) void {DUMP}(void) {{ __gcov_dump(); }}
"""
_TOLD = 200


def measure_native(
    reach: Reach,
    units: Sequence[Unit],
    *,
    jobs: int,
    threads: int,
    save: Callable[[], None],
    report: Callable[[str], None],
    end: float,
) -> bool:
    """Add the lines of C++ to `reach`, level by level. `end`: no unit starts after this time; then returns False.

    Raises `BuildFailed` and `NurseryFailed`.
    """
    levels: dict[str, dict[str, list[Unit]]] = {}
    for unit in units:
        if unit.name in reach.seconds and unit.group not in reach.native:
            levels.setdefault(unit.name.partition("/")[0], {}).setdefault(unit.group, []).append(unit)
    if not levels:
        return True
    with tempfile.TemporaryDirectory(prefix="tpk-gcov-") as name:
        folder = Path(name)
        report("building the C++ of the kit with line coverage")
        build_all(folder / "sources", folder / "build", jobs, "-O0 --coverage", _BESIDE)
        modules = {
            module: next((folder / "build").rglob(f"{module.rpartition('.')[2]}*.so"))
            for module in MODULES.values()
        }
        with Nursery("driver", threads) as nursery:
            for level, groups in levels.items():
                report(f"recording which C++ lines {sum(map(len, groups.values()))} units of {level} execute")
                counts = folder / f"counts-{level}"
                places = {group: counts / str(number) for number, group in enumerate(groups)}
                orders = [(unit, places[group]) for group, members in groups.items() for unit in members]
                if not _run_all(nursery, modules, orders, jobs, end):
                    return False
                with ThreadPoolExecutor(jobs) as pool:
                    found = pool.map(lambda place: _lines(place, folder), places.values())
                    for group, (ran, there) in zip(places, found, strict=True):
                        reach.add_native(group, ran, there)
                shutil.rmtree(counts, ignore_errors=True)
                save()
    return True


def _run_all(
    nursery: Nursery,
    modules: dict[str, Path],
    orders: Sequence[tuple[Unit, Path]],
    jobs: int,
    end: float,
) -> bool:
    def work(share: Sequence[tuple[Unit, Path]]) -> bool:
        with Server(nursery, modules) as server:
            found = server.failure or server.warm()
            if found.caught:
                raise NurseryFailed(f"the kit built with line coverage cannot be opened: {found.message}")
            for unit, counts in share:
                if time.monotonic() > end:
                    return False
                server.run(unit, LIMIT, counts=counts)
        return True

    with ThreadPoolExecutor(jobs) as pool:
        return all(pool.map(work, [orders[number::jobs] for number in range(jobs)]))


def _lines(counts: Path, folder: Path) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """By file, the lines that ran, and all lines with code."""
    ran: dict[str, set[int]] = {}
    there: dict[str, set[int]] = {}
    sources = str(folder / "sources") + os.sep
    data = sorted(counts.rglob("*.gcda"))
    for one in data:
        # GCOV_PREFIX prepends the folder to the absolute path of the object.
        shutil.copy(Path(os.sep) / one.relative_to(counts).with_suffix(".gcno"), one.with_suffix(".gcno"))
    if not data:
        return ran, there
    done = run_tool(["gcov", "--json-format", "--stdout", *map(str, data)], counts)
    if done.returncode:
        raise BuildFailed(f"gcov, which comes with GCC, cannot read the counts: {done.stderr[:_TOLD]}")
    for text in done.stdout.splitlines():
        for file in json.loads(text)["files"]:
            if file["file"].startswith(sources):
                path = file["file"].removeprefix(sources)
                there.setdefault(path, set()).update(line["line_number"] for line in file["lines"])
                ran.setdefault(path, set()).update(
                    line["line_number"] for line in file["lines"] if line["count"]
                )
    return ran, there

"""Planted faults of the language's functions, the collectives and the overlapped kernels, one at a time.

``python -m triton_porting_kit.conformance.distributed.faults`` changes one place of their sources, for every place that
a rule of `planting` names, and runs the checks ``distributed/model/*`` on it. Each fault runs in a process that is
forked from one that has loaded everything else.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from triton_porting_kit.conformance.distributed.planting import MODULES, Fault, faults

DEMANDED = 0.97
"""The share of the faults that must be found."""
_CPU_SECONDS = 60
"""What a fault may take; one that takes more does not end."""
_NAME = "triton_porting_kit.conformance.distributed.modelled"


class _Changed(importlib.abc.MetaPathFinder):
    """Finds one module in another file."""

    def __init__(self, module: str, path: Path) -> None:
        self._module, self._path = module, path

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._path)


def _load_the_rest() -> None:
    """Load what no fault changes. A kernel is compiled, so that the stages are loaded, too."""
    import triton
    from triton.compiler import ASTSource
    from triton.runtime.driver import driver

    from triton_porting_kit.kernels.vector_add import vector_add_kernel as kernel

    signature = dict.fromkeys(kernel.arg_names, "*fp32") | {"n_elements": "i32", "BLOCK": "constexpr"}
    source = ASTSource(kernel, signature, constexprs={(kernel.arg_names.index("BLOCK"),): 64})
    triton.compile(source, target=driver.active.get_current_target())
    changed = [name for name in sys.modules if name in MODULES]
    assert not changed, f"{changed} are loaded before they are changed"


def _run(fault: Fault, folder: Path) -> str:
    """What the checks find; empty if nothing."""
    path = folder / f"{fault.name.replace('/', '-')}.py"
    path.write_text(fault.text)
    sys.meta_path.insert(0, _Changed(fault.module, path))
    modelled = importlib.import_module(_NAME)
    for name in fault.programs or [*modelled.PROGRAMS, modelled.THREADS]:
        if found := modelled.try_program(name):
            return f"{name}: {found}"
    return ""


def forked(work: Callable[[], str], cpu_seconds: int) -> str:
    """What `work` returns in a process of its own. What it raises, and the end of its time, count as text, too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        try:
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        with os.fdopen(writer, "w") as out:
            out.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as found:
        text = found.read().decode()
    _, status = os.waitpid(child, 0)
    return text or ("" if status == 0 else f"the process ended with status {status}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults. Returns 0 if enough of them are found and none is found in the unchanged sources."""
    parser = argparse.ArgumentParser(description="Plant faults in kernels of several ranks.")
    parser.add_argument("--select", default="*", help="a pattern of names")
    parser.add_argument("--part", default="0/1", metavar="K/N", help="every N-th fault, from fault K on")
    parser.add_argument("--list", action="store_true", help="print the names only")
    given = parser.parse_args(arguments)
    part, parts = (int(number) for number in given.part.split("/"))
    chosen = [fault for fault in faults() if fnmatch.fnmatchcase(fault.name, given.select)][part::parts]
    if given.list:
        print("\n".join(f"{fault.name}  {fault.sentence}" for fault in chosen))
        return 0
    os.environ["TRITON_DEFAULT_BACKEND"] = "cpu"
    table: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        _load_the_rest()
        used = {name for fault in chosen for name in fault.programs}
        programs = tuple(sorted(used)) if all(fault.programs for fault in chosen) else ()
        unchanged = replace(Fault.none(), programs=programs)
        clean = forked(lambda: _run(unchanged, Path(folder)), 10 * _CPU_SECONDS)
        print(f"no fault: {clean or 'nothing is found'}", flush=True)
        for fault in chosen:
            begin = time.monotonic()
            found = forked(lambda fault=fault: _run(fault, Path(folder)), _CPU_SECONDS)  # type: ignore[misc]
            counts = table.setdefault(fault.rule, [0, 0])
            counts[0] += 1
            counts[1] += bool(found)
            text = found.partition("\n")[0][:110] or "NOT FOUND"
            print(f"{fault.name} ({fault.sentence}): {text} ({time.monotonic() - begin:.1f} s)", flush=True)
    for rule, (planted, found_of) in table.items():
        print(f"{rule:<12} {planted:>4} {found_of:>4}")
    planted, found_all = (sum(counts[i] for counts in table.values()) for i in (0, 1))
    share = found_all / planted if planted else 1.0
    print(f"{found_all} of {planted} faults are found: {share:.1%} ({DEMANDED:.0%} are demanded)")
    return int(bool(clean) or share < DEMANDED)


if __name__ == "__main__":
    sys.exit(main())

"""The level `public`: what a process finds of a package, and whose fault it is."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.conformance.context import Context, Session
from triton_porting_kit.conformance.execution.selection import select
from triton_porting_kit.conformance.memory import HostMemory
from triton_porting_kit.conformance.public import checks, markdown, packages, results, table
from triton_porting_kit.conformance.public.command import selections
from triton_porting_kit.conformance.public.entries import Case, Collection, cases_of
from triton_porting_kit.conformance.public.hosts import Host
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status

pytest.importorskip("torch")
HERE = Path(__file__).parent


class _Target:
    backend = "cpu"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that runs an entry of the planted collection, and returns its result and status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        patch.setenv("PYTHONPATH", str(HERE))
        patch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
        import planted_collection

        collection: Collection = planted_collection.COLLECTION
        cases = {case.name: case for case in cases_of(collection)}
        cache = tmp_path_factory.mktemp("packages")
        patch.setattr(Session, "target", _Target())

        def run(name: str, **options: Any) -> tuple[results.Result, Status]:
            given = Options(checkouts={"planted": HERE}, cache=cache, **options)
            for variable, value in given.variables().items():
                patch.setenv(variable, value)
            case: Case = cases[f"public/planted/{name}"]
            context = Context(Session("cpu", HostMemory()), case.name)
            checks.Body(case)(context)
            record = Record(case.name, "public", "Right.", 0.0, 0, [*context.evidence])
            return results.result_of(Record.from_json(record.to_json())), record.status

        yield run
        checks._hosts.close()


@pytest.mark.parametrize("variant", ["float32", "float32-gradient"])
def test_right(planted: Any, variant: str) -> None:
    result, status = planted(f"doubled-{variant}")
    assert (result.verdict, status) == ("right", Status.PASS)
    assert not result.caught
    assert not result.times


def test_times(planted: Any) -> None:
    result, _ = planted("doubled-float32", threads=(1,))
    assert result.times[1].seconds > 0
    assert result.times[1].ratio is not None
    assert result.times[1].ratio > 0


def test_a_kernel_that_leaves_its_arguments(planted: Any) -> None:
    result, status = planted("beyond-float32")
    assert (result.verdict, status) == ("package", Status.WAIVED)
    assert re.search(r"behind the end of argument 'X'.*planted_kernels\.py:\d+", result.findings[0])


def test_races_and_memory_that_nobody_wrote(planted: Any) -> None:
    assert planted("doubled-float32", checked=True)[0].findings == ()
    (race,) = planted("races-float32", checked=True)[0].findings
    assert re.search(
        r"'add_kernel' \(\S*planted_kernels\.py:\d+\): byte \d+ of argument 'Y' is also stored to", race
    )
    result, status = planted("unwritten-float32", checked=True)
    assert status is Status.PASS
    (finding,) = result.findings
    assert finding.startswith("wrong where uninitialised memory is filled: result 0")


def test_compile_errors_that_were_caught(planted: Any) -> None:
    result, status = planted("hidden-float32")
    assert (result.verdict, status) == ("right", Status.PASS)
    assert len(result.caught) == 1
    assert "not on this device" in result.caught[0]
    heading, line, _ = markdown.caught([result, result], " on acme")
    assert heading.startswith("Compile errors that packages caught on acme")
    assert line.startswith("- planted, `hidden` (float32): ")
    assert "not on this device" in line
    assert not [*markdown.caught([dataclasses.replace(result, caught=())], "")]


def test_configurations_that_an_autotuner_passes_over(planted: Any) -> None:
    result, status = planted("tuned-float32")
    assert (result.verdict, status) == ("right", Status.PASS)
    assert result.caught == (), "no optimisation was lost"


def test_crashes_and_hangs(planted: Any) -> None:
    result, status = planted("dies-float32")
    assert (result.verdict, status) == ("crash", Status.CRASH)
    result, status = planted("hangs-float32")
    assert (result.verdict, status) == ("timeout", Status.TIMEOUT)
    assert planted("doubled-float32")[1] is Status.PASS, "the next entry does not suffer"


def test_a_shorter_time_limit(planted: Any) -> None:
    result, status = planted("hangs-float32", seconds=0.5)
    assert (status, result.reason) == (Status.TIMEOUT, "no result after 0.5 s")


@pytest.mark.parametrize(
    ("cuda", "given", "expected"), [(True, "", "ieee"), (True, "tf32", "tf32"), (False, "", None)]
)
def test_products_of_float32_on_cuda(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, given: str, expected: str | None
) -> None:
    monkeypatch.delenv("TRITON_F32_DEFAULT", raising=False)
    if given:
        monkeypatch.setenv("TRITON_F32_DEFAULT", given)
    host = Host(table.collection("fla"), Options(), 1, cuda=cuda)
    assert host._environment([]).get("TRITON_F32_DEFAULT") == expected


def test_the_table() -> None:
    collections = table.collections()
    cases = [case for collection in collections for case in cases_of(collection)]
    names = [case.name for case in cases]
    assert len(collections) >= 12
    assert len(names) >= 300
    assert len({*names}) == len(names)
    assert all(re.fullmatch(r"public/[a-z_]+/[\w.]+-\w+(-gradient)?", name) for name in names)
    for case in cases:
        assert (case.entry.tolerance == 1.0) == (not case.entry.because), case.name
        assert {*case.entry.gradients} <= case.entry.inputs.keys(), case.name
        assert not case.entry.large or case.entry.large.keys() == case.entry.inputs.keys(), case.name


def test_the_table_needs_neither_torch_nor_packages() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from triton_porting_kit.conformance.public import table\n"
        "print(len(list(table.CHECKS)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 300


def test_entries_of_earlier_reports_are_left_out() -> None:
    names = [check.name for check in table.CHECKS]
    tried = [name for name in names if name.startswith("public/trinix/")][3:]

    def chosen(*only: str) -> list[str]:
        return [check.name for check in select(table.CHECKS, selections(only, tried))]

    assert chosen() == [name for name in names if name not in tried]
    assert chosen("trinix", "torchnorm/rms*") == [
        "public/torchnorm/rms_norm-float32",
        "public/torchnorm/rms_norm-bfloat16",
        *[name for name in names if name.startswith("public/trinix/")][:3],
    ]


def test_packages_for_a_machine_with_another_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def pip(arguments: list[str], package: str) -> None:
        Path(arguments[arguments.index("--target") + 1]).mkdir(exist_ok=True)
        commands.append(arguments)

    monkeypatch.setattr(packages, "_pip", pip)
    gems = table.collection("flag_gems")
    there = packages.ensure(gems, Options(cache=tmp_path, python="3.99"))
    assert len(there) == 1, "Triton is that of the other machine"
    assert "--python-version 3.99 --only-binary :all:" in " ".join(commands[0])
    here = packages.ensure(gems, Options(cache=tmp_path))
    assert here[0] != there[0]
    assert "--python-version" not in commands[1]
    monkeypatch.setattr(importlib.metadata, "version", lambda name: gems.triton)
    assert packages.ensure(gems, Options(cache=tmp_path)) == here[:1], (
        "the installed Triton is of that release"
    )


def test_a_dozen_entries_of_packages(tmp_path: Path) -> None:
    """From the index, as `tpk public` fetches them."""
    from triton_porting_kit.conformance.public.command import PublicRequest, run_public
    from triton_porting_kit.conformance.report.folder import read_run

    only = ("torchnorm", "trinix/*glu-float32*")
    request = PublicRequest(
        "cpu", only, Options(cache=tmp_path / "packages"), tmp_path / "report", jobs=2, quiet=True
    )
    run_public(request)
    found = results.results_of(read_run(tmp_path / "report").records)
    assert len(found) == 12
    other = {(r.entry, r.type): r.verdict for r in found if r.verdict != "right"}
    assert other == {("fused_add_rms_norm", "float32"): "package"}
    assert not any(result.caught for result in found)

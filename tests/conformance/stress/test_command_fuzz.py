"""`tpk fuzz`: exit status, replay, scripts of failing programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

from triton_porting_kit.cli.app import app
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.stress import outcome, worker
from triton_porting_kit.conformance.stress.campaign import SHRUNK_ALIKE, Campaign, seeds_of
from triton_porting_kit.conformance.stress.configuration import (
    DEFAULT,
    Configuration,
    NoSuchConfiguration,
    configurations,
)
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.source import source_of
from triton_porting_kit.conformance.types import Array


def test_seeds_are_those_of_the_level() -> None:
    assert list(seeds_of(2, 5)) == [2_000_000, 2_500_000, 2_750_000, 2_875_000, 2_000_001]
    assert list(seeds_of(2, 2, ("products",))) == [2_750_000, 2_750_001]


def test_programs_of_one_family(tmp_path: Path) -> None:
    options = ["--count", "2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["fuzz", "--about", "products", *options])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["fuzz", "--about", "products,matrices", *options])
    assert isinstance(done.exception, NoSuchConfiguration)
    assert "'matrices'; --about takes operations, addresses, products, rows" in str(done.exception)


def test_programs_that_pass(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--count", "3", "--seed", "4", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert re.search(r"3 programs, none failed \([0-9.]+ a second\)\.", done.output)
    assert not (tmp_path / "out").exists()


def test_replay_runs_one_program(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--replay", "17", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "1 programs, none failed" in done.output


def test_minutes_end_the_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--minutes", "0.02", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output


def test_a_run_whose_output_is_a_file_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_porting_kit.conformance.command_fuzz.PROGRESS_SECONDS", 0.0)
    done = CliRunner().invoke(app, ["fuzz", "--count", "3", "--jobs", "2", "--out", str(tmp_path)])
    assert [int(n) for n in re.findall(r" s: (\d+) programs, 0 failures", done.output)] == [1, 2, 3]


def test_failures_are_shown_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that finds every program with a store wrong: all that is left is a store."""

    class Wrong(Isolated):
        def run(
            self, work: int | Launch, seconds: float | None = None, configuration: Configuration = DEFAULT
        ) -> outcome.Outcome:
            assert super().run(work, seconds, configuration).kind == outcome.PASS
            return outcome.Outcome(outcome.WRONG, "O0 (i32): nothing is right")

    monkeypatch.setattr("triton_porting_kit.conformance.command_fuzz.Isolated", Wrong)
    options = ["--about", "operations,addresses", "--count", "2"]
    done = CliRunner().invoke(app, ["fuzz", *options, "--out", str(tmp_path)])
    assert done.exit_code == 1, done.output
    assert "seed 0: wrong result: O0 (i32): nothing is right" in done.output
    assert "tpk fuzz --backend cpu --replay 500000" in done.output
    text = (tmp_path / "fuzz_0.py").read_text()
    assert len(re.findall(r"tl\.(store|atomic)", text)) == 1
    compile(text, "fuzz_0.py", "exec")


def test_failures_are_kept_whole_without_shrinking(tmp_path: Path) -> None:
    with Isolated("cpu") as isolated:
        faulty = Campaign(
            "cpu",
            [isolated],
            tmp_path,
            shrinks=False,
            write=lambda p: source_of(p).replace("tl.store", "tl.stare"),
        )
        ((seed, (failure,)),) = faulty.run([5])
    assert seed == 5
    assert failure.outcome.kind == outcome.ERROR
    assert failure.shrunk is None
    assert failure.path == tmp_path / "fuzz_5.py"


def test_a_backend_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--backend", "abacus", "--count", "1", "--out", str(tmp_path)])
    assert done.exit_code != 0
    assert "abacus" in str(done.exception)


def test_programs_run_in_every_configuration(tmp_path: Path) -> None:
    options = ["--count", "3", "--seed", "4", "--isa", "each", "--threads", "1,2", "--jobs", "2"]
    done = CliRunner().invoke(app, ["fuzz", *options, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    ways = 2 * len(configurations("cpu", "each"))
    assert f"3 programs, each in {ways} configurations, none failed" in done.output


def test_programs_run_with_other_options_too(tmp_path: Path) -> None:
    options = ["--count", "4", "--seed", "4", "--against", "form=linalg", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["fuzz", *options])
    assert done.exit_code == 0, done.output
    assert re.search(r"4 programs and with form=linalg: equal results [1-4] times, none failed", done.output)


def test_options_that_are_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--count", "1", "--against", "form", "--out", str(tmp_path)])
    assert isinstance(done.exception, NoSuchConfiguration)
    assert "'form'" in str(done.exception)


@pytest.mark.parametrize(("second", "said"), [(2.0, outcome.ROUNDED), (1.0, outcome.SAME)])
def test_results_are_compared_with_each_other(
    second: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that NumPy's rules both allow."""

    def run(launch: Launch, memory: object, **options: str) -> tuple[str, list[Array]]:
        return "", [np.array([second if options.get("form") else 1.0, np.nan])]

    monkeypatch.setattr(worker, "run", run)
    launch = Launch.of(generate(0))
    found = worker.outcome_of(launch, cast(MemoryAccess, None), {}, {"form": "linalg"})
    assert (found.kind, found.detail) == (outcome.PASS, said)


def test_a_second_run_that_is_wrong_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(launch: Launch, memory: object, **options: str) -> tuple[str, list[Array]]:
        return "O0 is wrong" * ("form" in options), []

    monkeypatch.setattr(worker, "run", run)
    found = worker.outcome_of(Launch.of(generate(0)), cast(MemoryAccess, None), {}, {"form": "linalg"})
    assert found == outcome.Outcome(outcome.WRONG, "with {'form': 'linalg'}: O0 is wrong")


def test_failures_name_their_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that finds programs wrong with two threads."""

    class Wrong(Isolated):
        def run(
            self, work: int | Launch, seconds: float | None = None, configuration: Configuration = DEFAULT
        ) -> outcome.Outcome:
            return outcome.Outcome(
                outcome.WRONG if configuration.threads == 2 else outcome.PASS, "nothing is right"
            )

    monkeypatch.setattr("triton_porting_kit.conformance.command_fuzz.Isolated", Wrong)
    options = ["--count", "1", "--threads", "1,2", "--no-shrink", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["fuzz", *options])
    assert done.exit_code == 1, done.output
    assert "seed 0 (2 threads): wrong result" in done.output
    assert "--replay 0 --threads 2" in done.output
    text = (tmp_path / "fuzz_0_2_threads.py").read_text()
    assert 'os.environ["TPK_NUM_THREADS"] = "2"' in text


@pytest.mark.parametrize("which", ["first", "second"])
def test_the_script_has_the_options_of_the_run_that_fails(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(Isolated):
        def run(
            self, work: int | Launch, seconds: float | None = None, configuration: Configuration = DEFAULT
        ) -> outcome.Outcome:
            wrong = which == "first" or configuration.against or dict(configuration.options).get("num_stages")
            return outcome.Outcome(outcome.WRONG if wrong else outcome.PASS, "nothing is right")

    monkeypatch.setattr("triton_porting_kit.conformance.command_fuzz.Isolated", Wrong)
    options = ["--count", "1", "--against", "num_stages=5", "--no-shrink", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["fuzz", *options])
    assert done.exit_code == 1, done.output
    text = (tmp_path / "fuzz_0.py").read_text()
    assert (", num_stages=5)" in text) == (which == "second")


def test_of_many_failures_alike_a_few_are_shrunk(tmp_path: Path) -> None:
    with Isolated("cpu") as isolated:
        faulty = Campaign(
            "cpu", [isolated], tmp_path, shrinks=False, write=lambda p: source_of(p) + "    nothing + 1\n"
        )
        found = dict(faulty.run(range(SHRUNK_ALIKE + 2)))
    assert [failure.path is not None for (failure,) in found.values()] == [True] * SHRUNK_ALIKE + [False] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--isa", "avx99"], "avx99"), (["--threads", "none"], "counts from 1 to 1024")],
)
def test_what_is_no_configuration_is_said(options: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--count", "1", *options])
    assert done.exit_code != 0
    assert message in str(done.exception)

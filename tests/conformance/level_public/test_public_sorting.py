"""Whose fault a failure is, what results say, and what the page shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_runs import metadata

from triton_porting_kit.conformance.execution.runfolder import RunFolder
from triton_porting_kit.conformance.public import page, results, runs, sorting, suites
from triton_porting_kit.conformance.public.command import selections
from triton_porting_kit.conformance.public.entries import Known
from triton_porting_kit.conformance.public.table import UnknownCollection
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.evidence import in_text
from triton_porting_kit.conformance.report.folder import read_run
from triton_porting_kit.conformance.report.page import view
from triton_porting_kit.conformance.status import Status

RIGHT = {"kind": "comparison", "what": "result 0", "elements": 4, "differ": 0, "rule": "identical"}
WRONG = {**RIGHT, "differ": 3, "message": "3 of 4 differ"}


def _error(kind: str, message: str, file: str = "somebody/ops.py") -> dict[str, Any]:
    trace = f'  File "{file}", line 1, in f'
    return {"kind": "error", "stage": "check", "type": kind, "message": message, "traceback": trace}


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ([RIGHT], "right"),
        ([RIGHT, WRONG], "kit"),
        ([_error("ValueError", "something")], "kit"),
        ([_error("CudaNotMapped", "torch.cuda.graphs has no meaning here")], "gpu"),
        ([_error("RuntimeError", "this needs compute capability 9.0")], "gpu"),
        ([_error("ImportError", "cannot import name 'x' from 'triton'")], "release"),
        ([_error("CompilationError", "Block pointers have been removed in favor of descriptors")], "release"),
        ([_error("AssertionError", "")], "package"),
        ([_error("AssertionError", "", "triton/runtime/jit.py")], "kit"),
        ([_error("ValueError", "x must be on cuda device")], "package"),
        ([{"kind": "process", "signal": "SIGSEGV", "message": "died"}], "crash"),
        ([{"kind": "process", "timeout": 3.0, "message": "no result"}], "timeout"),
        ([{"kind": "harness", "type": "ReferenceFailed", "message": "no such function"}], "harness"),
    ],
)
def test_verdicts(evidence: list[dict[str, Any]], verdict: str) -> None:
    assert sorting.verdict_of(evidence, None)[0] == verdict


def test_what_someone_found_by_looking_decides() -> None:
    known = Known("package", "it triples")
    assert sorting.verdict_of([WRONG], known) == ("package", "it triples")
    assert sorting.verdict_of([_error("ValueError", "x")], known) == ("package", "it triples")
    assert sorting.verdict_of([RIGHT], known) == ("right", ""), "a mended package is right"
    mistake = {"kind": "harness", "type": "ReferenceFailed", "message": "x"}
    assert sorting.verdict_of([mistake], known)[0] == "harness"


def _record(name: str, *evidence: dict[str, Any]) -> Record:
    return Record(f"public/{name}", "public", "Right.", 1.0, 0, list(evidence))


TIMES = {"kind": "times", "what": "1 thread", "threads": 1, "seconds": 0.5, "eager": 1.0}
RECORDS = [
    _record("liger/rms_norm_llama-float32", RIGHT, TIMES),
    _record("liger/rms_norm_llama-float32-gradient", RIGHT, {**TIMES, "eager": 4.0}),
    _record("liger/softmax-bfloat16", RIGHT, {"kind": "caught", "what": "caught", "messages": ["refused"]}),
    _record("conch/nms-float32", WRONG),
    _record(
        "torchao/mx-uint8",
        {"kind": "upstream", "what": "package", "message": "its own | fault"},
        {
            "kind": "finding",
            "what": "mx",
            "message": "a store behind the end of 'Y': torchao/mx.py:7, in mx_kernel",
        },
    ),
]


def test_results_of_records() -> None:
    found = results.results_of(RECORDS)
    assert [r.verdict for r in found] == ["right", "right", "right", "kit", "package"]
    assert (found[1].entry, found[1].type, found[1].gradient) == ("rms_norm_llama", "float32", True)
    assert found[2].caught == ("refused",)
    assert results.ratios(found, 1) == [2.0, 8.0]
    assert results.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert [r.status for r in RECORDS] == [Status.PASS] * 3 + [Status.FAIL, Status.WAIVED]


def test_the_page(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", {**metadata(), "planned": [r.name for r in RECORDS]})
    for record in RECORDS:
        run.append(record)
    run.finish("2026-01-01T00:00:00+00:00")
    target = tmp_path / "page.md"
    page.write([tmp_path / "run"], target)
    text = target.read_text()
    assert (
        "| `liger-kernel` 0.8.5 | BSD-2-Clause | torch 2.1.2, Triton 2.3.1 or later | 3 | 3 | 0 | 0 | 0 | 0 | 1 |"
        in text
    )
    assert "| conch | `nms` | float32 | kit | result 0: 3 of 4 differ |" in text
    assert "its own \\| fault" in text
    assert "- torchao, `torchao/mx.py:7`, in `mx`: a store behind the end of 'Y'." in text
    assert "### liger: The gradient of a token-level" in text
    assert "### sageattention" not in text, "it was not tried"
    assert "| 1 | 2 | 4.00 | 8.00 | 0 |" in text
    assert "| `rms_norm_llama` | float32, float32 gradient |  | 500, 2.00x |" in text
    picture = ElementTree.fromstring((tmp_path / "page.svg").read_text())
    assert len(picture.findall(".//{*}circle")) == 2

    report = read_run(tmp_path / "run")
    rows = view.public_rows(report)
    assert [row[0] for row in rows] == ["liger", "conch", "torchao"]
    assert rows[2][1:4] == [0, 0, 1]
    assert rows[0][-2:] == [1, 0]
    assert "not the kit's fault" in in_text(RECORDS[4])


def _written(folder: Path, records: list[Record], **about: str) -> Path:
    """The folder of a run with these records."""
    run = RunFolder(folder, {**metadata(), **about, "planned": [r.name for r in records]})
    for record in records:
        run.append(record)
    run.finish("2026-01-01T00:00:00+00:00")
    return folder


def test_the_page_has_a_line_for_each_other_place(tmp_path: Path) -> None:
    def written(name: str, records: list[Record], **about: str) -> Path:
        return _written(tmp_path / name, records, **about)

    again = [_record("liger/rms_norm_llama-float32", RIGHT)]
    folders = [written("first", RECORDS), written("again", again), written("npu", RECORDS, backend="acme")]
    older = [_record("conch/nms-float32", WRONG), _record("liger/rms_norm_llama-float32", WRONG)]
    folders += [written("older", older, triton_version="3.0")]
    folders += [written("npu-older", again, backend="acme", triton_version="3.0")]
    page.write(folders, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert re.search(r"\| acme \|[^\n]* \| 5 \| 3 \| 60.0 % \| 1 \| 1 \| 0 \| 0 \| 1 \|\n", text)
    of_runs = text.partition("The runs on acme")[2].partition("Not right")[0]
    assert "| 3.0 |" in of_runs, "each run has its own releases"
    assert re.search(r"\| 4 \| 1 \|\n.*\| 3.0 \|.* \| 1 \| 0 \|\n", of_runs)
    of_acme = text.partition("Not right on acme, Triton")[2].partition("##")[0]
    assert "| conch | `nms` | float32 | kit | result 0: 3 of 4 differ |" in of_acme
    of_older = text.partition(", Triton 3.0:\n")[2].partition("##")[0]
    assert "rms_norm_llama" in of_older
    assert "nms" not in of_older, "it is wrong on the page's own release, too"
    assert "| `rms_norm_llama` | float32, float32 gradient |  | 500, 2.00x |" in text, "times are kept"


def test_the_page_says_why_entries_are_slow(tmp_path: Path) -> None:
    def timed(name: str, *ratios: float) -> Record:
        times = [
            {**TIMES, "threads": threads, "seconds": 1.0, "eager": ratio}
            for threads, ratio in enumerate(ratios, start=1)
        ]
        return _record(name, RIGHT, *times)

    records = [
        timed("liger/group_norm-bfloat16", 0.5, 0.4),
        timed("liger/softmax-bfloat16", 0.7, 0.5),
        timed("liger/geglu-bfloat16", 0.7, 0.7),
        timed("liger/swiglu-bfloat16", 0.6, 2.0),
    ]
    page.write([_written(tmp_path / "run", records)], tmp_path / "page.md")
    slow = (tmp_path / "page.md").read_text().partition("More than 1.5 times")[2].partition("##")[0]
    assert re.search(
        r"\| `group_norm` \| bfloat16 \| 0.50x \| 0.40x \| sums and products of each element", slow
    )
    assert (
        "| `softmax` | bfloat16 | 0.70x | 0.50x | not slow with one thread; the second was not looked into |"
        in slow
    )
    assert "| `swiglu` | bfloat16 | 0.60x | 2.00x |  |" in slow, "nobody has said why"
    assert "geglu" not in slow


def test_runs_are_added_to_a_page(tmp_path: Path) -> None:
    """Also where their reports are gone: the file beside the page has what it needs."""
    records = [_record("liger/rms_norm_llama-float32", RIGHT, TIMES), *RECORDS[1:]]
    mended = [_record("conch/nms-float32", RIGHT), _record("fla/chunk_gla-float32", RIGHT)]
    first, second = _written(tmp_path / "first", records), _written(tmp_path / "second", mended)
    npu = _written(tmp_path / "npu", RECORDS, backend="acme")
    together, apart = tmp_path / "together.md", tmp_path / "apart.md"
    page.write([first, second, npu], together)
    for folder in (first, npu, second):
        page.write([folder], apart)
        shutil.rmtree(folder)
    page.write([], apart)
    assert apart.read_text().replace("apart.", "together.") == together.read_text()
    assert "| runs, of which the last one of an entry counts | 2 |" in apart.read_text()
    kept = runs.read(apart.with_suffix(".json"))
    assert [run.counts["right"] for run in kept] == [3, 2, 3], "the second run of an entry takes its place"
    assert {r.name for r in runs.results(kept)} == {r.name for r in [*RECORDS, *mended]}
    with pytest.raises(ReportError, match="there are no results for"):
        page.write([], tmp_path / "other.md")


def test_runs_are_added_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.md"
    run = _written(tmp_path / "run", RECORDS)
    assert page.main([str(target), str(run)]) == 0
    assert target.read_text().startswith("# Public kernels")
    assert page.main([str(tmp_path / "other.md")]) == 2
    assert "name the folders of runs of the level" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        page.main(["--help"])
    assert "REPORT" in capsys.readouterr().out


def test_results_of_a_run_that_are_only_counted(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    page.write([_written(tmp_path / "run", RECORDS)], target)
    kept = target.with_suffix(".json")
    older = runs.Run(runs.Facts("cpu", "EPYC", "2.9", "2.0"), (), {"right": 3, "package": 1})
    runs.write(kept, [*runs.read(kept), older])
    page.write([], target)
    assert "| cpu | EPYC | 2.9 | 2.0 | 4 | 3 | 75.0 % | 0 | 1 | 0 | 0 | 0 |" in target.read_text()
    unwatched = runs.Run(runs.Facts("cpu", "EPYC", "2.9", "2.0", watched=False), (), {"right": 2})
    runs.write(kept, [*runs.read(kept), unwatched])
    page.write([], target)
    assert (
        "| cpu | EPYC | 2.9 | 2.0 | 6 | 5 | 83.3 % | 0 | 1 | 0 | 0 | 0, of 4 entries |" in target.read_text()
    )


@pytest.mark.parametrize(
    "content", ["[]", '{"runs": [{}]}', '{"runs": [{"facts": {"x": 1}, "results": {}}]}', "{"]
)
def test_a_file_of_results_that_is_damaged(tmp_path: Path, content: str) -> None:
    (tmp_path / "page.json").write_text(content)
    with pytest.raises(ReportError, match=r"page\.json (is not JSON|.*write the page from the reports)"):
        page.write([], tmp_path / "page.md")


def test_selections() -> None:
    assert selections(("liger", "fla/chunk_*")) == ("public/liger/*", "public/fla/chunk_*")
    with pytest.raises(UnknownCollection, match="there is no collection 'ligre'; there are liger, fla"):
        selections(("ligre",))


@pytest.mark.parametrize(
    ("message", "trace", "verdict"),
    [
        ("AssertionError: Tensor-likes are not close!", "Mismatched elements: 1 / 4", "unsorted"),
        ("AssertionError: assert 'cpu' == 'cuda'", "", "package"),
        ("ImportError: cannot import name 'x' from 'transformers'", "", "release"),
        ("triton_porting_kit.errors.LaunchError: host CPU", "", "kit"),
        ("CudaNotMapped: torch.cuda.graph", "", "gpu"),
        ("RuntimeError: Invalid mt19937 state", "", "gpu"),
        ("KeyError: 'x'", "", "unsorted"),
    ],
)
def test_failures_of_upstream_tests(message: str, trace: str, verdict: str) -> None:
    assert suites.verdict_of(message, trace)[0] == verdict


def test_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_somebody.py").write_text(
        "import pytest, torch\n"
        "def test_right(): assert torch.ones(2, device='cuda').is_cuda\n"
        "def test_untuned(): import os; assert os.environ['TPK_TUNING'] == 'first'\n"
        "def test_close(): torch.testing.assert_close(torch.ones(2), torch.zeros(2))\n"
        "def test_inexact():\n"
        "    x = torch.arange(1, 80001, dtype=torch.float32).reshape(8, -1) / 3\n"
        "    torch.testing.assert_close(x @ x[0], (x.double() @ x[0].double()).float(), atol=0, rtol=0)\n"
        "def test_gpu(): torch.cuda.nvtx.range_push('x') if False else torch.cuda.graph(None)\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    assert suites.run_suite(suite, "cpu", ("-q",), tmp_path / "report") == 0
    printed = capsys.readouterr().out
    for line in (
        "2 right: passed",
        "1 skipped",
        "1 gpu: needs",
        "1 unsorted: a wrong",
        "1 reference: torch's",
    ):
        assert line in printed
    assert (tmp_path / "report" / suites.RESULTS).is_file()
    with pytest.raises(suites.SuiteFailed, match="there is no such folder"):
        suites.run_suite(tmp_path / "nothing", "cpu", (), tmp_path)

"""The level `torch`: what it plans, what passes on the CPU backend, and that wrong results are noticed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from levels_helpers import session
from report_runs import metadata, report

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.plan import applies
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.profile import TORCH_DTYPES, Profile, load
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.evidence import in_text, rerun
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.page import view
from triton_porting_kit.conformance.status import Status, Verdict
from triton_porting_kit.conformance.torch import calling, fallbacks, models, opinfo, support, tables
from triton_porting_kit.conformance.trial import try_check

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")


def check_of(name: str) -> Check:
    """A check of the level."""
    return next(check for check in catalogue.checks(["torch"]) if check.name == f"torch/{name}")


def tried(name: str) -> Record:
    """What becomes of a check here."""
    return try_check(check_of(name), session())


def report_of(records: list[Record], **options: Any) -> Report:
    """The report of a run with some options."""
    return report(records, options={**metadata()["options"], **options})


def compiled_as(change: Callable[..., Any], stock: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """What stands for `calling.compiled`: functions that change the results of operators."""

    def compiled(function: Any, device: str, **options: Any) -> Any:
        wanted = stock if options.get("stock") else change
        return (lambda *values: wanted(function(*values))) if wanted else function

    return compiled


# --- what is planned ---------------------------------------------------------------------------------


def test_every_operator_has_checks() -> None:
    names = [check.name for check in opinfo.CHECKS]
    assert len(names) == len({*names})
    for name, op in support.operators().items():
        expected = name not in tables.SKIPPED
        for mode in ("compiled_forward", "eager_forward"):
            there = any(n.startswith(f"torch/opinfo/{name}-{mode}-") for n in names)
            assert there == expected, f"{name} has {op.supported_dtypes('cpu')}"


def test_tables_name_operators() -> None:
    there = {op.name for op in support.operators().values()}
    for table in (tables.UNSPECIFIED, tables.NOT_UNIQUE, tables.TIES):
        assert set(table) <= there
        assert all(table.values())
    assert set(tables.SKIPPED) <= set(support.operators())
    assert all(tables.SKIPPED.values())


def test_a_check_leaves_no_garbage(tmp_path: Path) -> None:
    class Cycle:
        pass

    for _ in range(2):
        with support.inductor(str(tmp_path)):
            garbage = Cycle()
            garbage.itself = garbage  # type: ignore[attr-defined]
            there = weakref.ref(garbage)
            del garbage
        assert there() is None
    assert gc.get_freeze_count() > 100_000  # modules, which are not visited again


def test_the_device_decides_what_applies() -> None:
    counts = {}
    for device in ("cpu", "cuda", "acme"):
        about = {"kit_device": True, "torch": {"device": device}}
        fitting = [c for c in catalogue.checks(["torch"]) if applies(c, Settings("x"), about)]
        counts[device] = {c.torch for c in fitting}
    assert counts == {
        "cpu": {"compiled"},
        "cuda": {"compiled", "accelerator"},
        "acme": {"compiled", "accelerator", "eager"},
    }


def test_a_profile_limits_types(tmp_path: Any) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text('[capabilities]\ntorch_dtypes = ["bfloat16"]\n')
    about = {"kit_device": True, "torch": {"device": "cpu"}, "profile": load(path).to_json()}
    fitting = [c for c in catalogue.checks(["torch"]) if applies(c, Settings("x"), about)]
    needs = frozenset().union(*(c.needs for c in fitting))
    assert needs == {"torch:bfloat16"}
    assert {"torch:" + name for name in TORCH_DTYPES} > needs
    assert Profile().listing(fitting[0]) is None


def test_the_level_is_optional() -> None:
    assert not any(check.name.startswith("torch/") for check in catalogue.checks())


# --- what is missing ---------------------------------------------------------------------------------


def test_a_missing_device_is_a_reason() -> None:
    class Driver:
        torch_device = "acme100"

        def get_active_torch_device(self) -> Any:
            return torch.device(self.torch_device)

    about = support.describe(Driver())
    with pytest.raises(support.TorchLevelUnavailable, match=r"no torch device 'acme100'.*torch\.backends"):
        support.verify({"torch": about})
    support.verify({"torch": {"device": "cpu"}})


@pytest.mark.parametrize("missing", ["torch", "expecttest"])
def test_missing_packages_are_named(missing: str) -> None:
    program = f"""
import sys
sys.modules[{missing!r}] = None
from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.torch import support
assert "torch.testing" not in sys.modules
try:
    list(catalogue.checks(["torch"]))
except support.TorchLevelUnavailable as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert missing in done.stdout
    assert support.INSTALL in done.stdout


def test_listing_default_levels_does_not_import_torch() -> None:
    program = (
        "import sys\nfrom triton_porting_kit.conformance import catalogue\n"
        "assert list(catalogue.checks(['registration', 'runtime', 'kernels']))\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "opinfo/add-compiled_forward-float32",
        "opinfo/softmax-compiled_backward-float32",
        "opinfo/cumsum-compiled_forward-bfloat16",
        "opinfo/nn.functional.dropout-compiled_forward-float32",
        "opinfo/empty_like-compiled_forward-int64",
        "opinfo/mul-eager_forward-float32",
        "opinfo/tanh-eager_backward-float32",
        "opinfo/addmm-eager_out-float32",
    ],
)
def test_right_operators_pass(name: str) -> None:
    record = tried(name)
    assert record.status is Status.PASS, record.message


@pytest.mark.parametrize(
    "name", ["opinfo/add-compiled_forward-float32", "opinfo/mul-compiled_backward-float32"]
)
def test_a_slightly_wrong_operator_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "compiled", compiled_as(lambda found: found * (1 + 1e-4)))
    monkeypatch.setattr(opinfo, "_graphs", iter(range(99)).__next__)
    record = tried(name)
    assert (record.status, record.stage) == (Status.FAIL, "wrong result")


def test_what_torch_fails_at_too_is_waived(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(found: Any) -> Any:
        raise NotImplementedError(f"no lowering for buffer{id(found)}")

    def other(found: Any) -> Any:
        raise NotImplementedError("no such type")

    for stock, status in ((broken, Status.WAIVED), (other, Status.FAIL), (None, Status.FAIL)):
        monkeypatch.setattr(calling, "compiled", compiled_as(broken, stock))
        monkeypatch.setattr(opinfo, "_graphs", iter(range(99)).__next__)
        record = tried("opinfo/add-compiled_forward-float32")
        assert record.status is status
        assert "no lowering" in record.message


def test_an_operator_without_graphs_is_waived() -> None:
    record = tried("opinfo/equal-compiled_forward-float32")
    assert record.status is Status.WAIVED
    assert "no graph" in record.message


# --- models, memory ----------------------------------------------------------------------------------


def test_a_broken_model_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "models/experts-compiled_training-float32"
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    assert tried(name).status is Status.PASS
    monkeypatch.setattr(torch, "compile", lambda function, **_: lambda *values: function(*values) * 1.001)
    assert tried(name).status is Status.FAIL


@pytest.mark.parametrize("network", models.MODELS)
def test_eager_models_pass(network: str) -> None:
    record = tried(f"models/{network}-eager_training-float32")
    assert record.status is Status.PASS, record.message


class FakeDevice:
    """The module of a torch device whose counter never falls."""

    def __init__(self, leak: int) -> None:
        self.leak, self.calls = leak, 0

    def synchronize(self) -> None: ...

    def reset_peak_memory_stats(self) -> None: ...

    def memory_allocated(self) -> int:
        self.calls += 1
        return [0, 1 << 20, self.leak][self.calls - 1]

    def memory_reserved(self) -> int:
        return 1 << 21

    max_memory_allocated = memory_reserved


def test_memory_that_is_not_freed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for leak, status in ((0, Status.PASS), (1 << 20, Status.FAIL)):
        device = FakeDevice(leak)
        monkeypatch.setattr(torch, "get_device_module", lambda name, device=device: device)
        assert tried("memory/statistics").status is status


def test_a_missing_function_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_device_module", lambda name: object())
    record = tried("memory/statistics")
    assert record.status is Status.FAIL
    assert "torch.cpu.synchronize exists" in record.message


def test_views_and_copies_of_the_cpu_pass() -> None:
    assert {tried(f"memory/{name}").status for name in ("views", "copies")} == {Status.PASS}


# --- the report --------------------------------------------------------------------------------------


def test_all_planned_checks_are_mandatory() -> None:
    records = [tried(f"memory/{name}") for name in ("views", "copies")]
    whole = report_of(records, levels=["torch"])
    assert [result.level for result in whole.levels][-1] == "torch"
    assert whole.verdict is whole.levels[-1].verdict is Verdict.PASS
    selected = report_of(records, levels=["torch"], select=["*memory*"])
    assert selected.levels[-1].verdict is Verdict.INCOMPLETE
    assert report_of([]).levels[-1].level == "stress"


def test_a_failure_of_torch_is_shown_with_both_messages() -> None:
    item = {"kind": "upstream", "what": "sample 0", "message": "no lowering; C++ code: no lowering"}
    passed = {"kind": "expectation", "what": "a graph", "holds": True}
    wrong = {"kind": "expectation", "what": "a graph", "holds": False}
    found = Record("torch/opinfo/add-x", "torch", "Right.", 1.0, 0, [passed, item])
    assert (found.status, found.stage) == (Status.WAIVED, "torch")
    assert "C++ code: no lowering" in in_text(found)
    assert Record("torch/opinfo/add-x", "torch", "Right.", 1.0, 0, [wrong, item]).status is Status.FAIL
    assert "--level torch --select torch/opinfo/add-x" in rerun(report_of([found]).run, found.name)


def counted(name: str, **counts: int) -> Record:
    """A check that passed, with the operators that it left to the CPU."""
    passed = {"kind": "expectation", "what": "a graph", "holds": True}
    item = {"kind": "fallbacks", "what": "calls that ran on the CPU", "counts": counts}
    return Record(f"torch/{name}", "torch", "Right.", 1.0, 0, [passed, item])


def test_the_share_of_operators_that_run_without_the_cpu() -> None:
    records = [
        counted("opinfo/add-eager_forward-float32"),
        counted("opinfo/add-eager_backward-float32"),
        counted("opinfo/linalg.inv-eager_forward-float32", inv=2),
        counted("opinfo/linalg.inv-eager_forward-int64"),
        counted("opinfo/add-compiled_forward-float32"),
        counted("models/lstm-eager_training-float32", lstm=1),
        tried("memory/views"),
    ]
    assert {share.group: (share.without, share.whole) for share in fallbacks.shares(records)} == {
        "eager operators": (1, 2),
        "compiled operators": (1, 1),
        "models": (0, 1),
    }
    assert {record.status for record in records[:-1]} == {Status.PASS}
    assert "inv: 2" in in_text(records[2])
    [shown] = [items for title, items in view.facts(report_of(records)) if title == "Without the CPU"]
    assert ("eager operators", "1 of 2 (50.0%)") in shown


def test_operators_on_the_cpu_are_no_failures_and_no_proof() -> None:
    item = {"kind": "fallbacks", "what": "calls that ran on the CPU", "counts": {"inv": 1}}
    assert Record("torch/opinfo/x-y-z", "torch", "Right.", 1.0, 0, [item]).status is Status.HARNESS_ERROR


def test_errors_of_native_operators_are_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no frame of the backend's."""

    def compiled(function: Any, device: str, **options: Any) -> Any:
        return function if options.get("stock") else lambda *values: torch.zeros(2) @ torch.zeros(3)

    monkeypatch.setattr(calling, "compiled", compiled)
    found = tried("opinfo/add-compiled_forward-float32")
    assert found.status is Status.FAIL
    assert "inconsistent tensor size" in found.message

"""Runs PyTorch's own tests on the torch device of a backend: ``python tests/pytorch/upstream.py CHECKOUT``.

The checkout is one of PyTorch's repository at the tag of the installed release. Nothing in it is changed: files whose
tests name a device are copied, with the name of the installed device in its place. Each file runs in a process of its
own, which may die. Failures are sorted by `upstream_known.KNOWN`, which has the reason for each; any other failure makes
the command fail. More options are passed to pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase
from upstream_known import KNOWN, Known

_OPENREG = "test/cpp_extensions/open_registration_extension/torch_openreg/tests"
_SECONDS = 3600


@dataclass(frozen=True)
class Suite:
    """Some files of the checkout that run in the same way."""

    files: str
    """A pattern of paths."""
    renamed: bool = False
    """Whether the files name torch's example device, whose name is replaced."""
    select: str = ""
    """The tests that run: pytest's ``-k``."""
    environment: dict[str, str] = field(default_factory=dict)


SUITES = {
    "openreg": Suite(f"{_OPENREG}/test_*.py", renamed=True),
    "inductor": Suite(
        "test/inductor/test_triton_cpu_backend.py", environment={"TRITON_DEFAULT_BACKEND": "cpu"}
    ),
    "torch": Suite(
        "test/test_torch.py",
        select="PRIVATEUSE1",
        environment={"PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1"},
    ),
    "views": Suite(
        "test/test_view_ops.py",
        select="PRIVATEUSE1",
        environment={"PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1"},
    ),
    "indexing": Suite(
        "test/test_indexing.py",
        select="PRIVATEUSE1",
        environment={"PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1"},
    ),
}
"""By name. Tests of `torch`, `views` and `indexing` are PyTorch's for any device, by its `PrivateUse1TestBase`."""


@dataclass(frozen=True)
class Result:
    """The outcome of one test."""

    name: str
    """``FILE::CLASS::TEST``."""
    kind: str
    """``passed``, ``skipped`` or ``failed``."""
    message: str = ""


def renamed(text: str, device: str) -> str:
    """The text of a test of PyTorch's example device, for another device."""
    text = re.sub(r"^import torch_openreg.*\n", "", text, flags=re.MULTILINE)
    text = text.replace('backend="openreg"', 'backend="inductor"')
    text = text.replace('WithBackend("openreg")', 'WithBackend("inductor")')
    return text.replace("openreg", device).replace("OPENREG", device.upper())


def run(checkout: Path, suite: Suite, device: str, extra: list[str]) -> Iterator[Result]:
    """Run a suite's files, one after another. Raises FileNotFoundError if the checkout has none."""
    found = sorted(checkout.glob(suite.files))
    if not found:
        raise FileNotFoundError(
            f"{checkout} has no {suite.files}: it is no checkout of PyTorch with its tests"
        )
    for path in found:
        with tempfile.TemporaryDirectory() as folder:
            file = path
            if suite.renamed:
                file = Path(folder) / path.name
                file.write_text(renamed(path.read_text(), device))
            yield from _run_file(file, Path(folder) / "report.xml", suite, extra)


def _run_file(file: Path, report: Path, suite: Suite, extra: list[str]) -> Iterator[Result]:
    # PyTorch's conftest.py is for the release of pytest that PyTorch pins.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest"]
    command += ["-n", "1", "-c", os.devnull, "--rootdir", str(file.parent)]
    command += [f"--junitxml={report}", *extra, str(file)]
    if suite.select:
        command += ["-k", suite.select]
    done = subprocess.run(
        command,
        env={**os.environ, **suite.environment},
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if not report.is_file():
        yield Result(file.name, "failed", done.stdout[-2000:] + done.stderr[-2000:])
        return
    for cases in JUnitXml.fromfile(str(report)):
        for case in cases:
            yield _result(file.name, case)


def _result(file: str, case: TestCase) -> Result:
    name = "::".join([file, case.classname.rpartition(".")[2], case.name])
    for outcome in case.result:
        if isinstance(outcome, (Failure, Error)):
            return Result(name, "failed", f"{outcome.message}\n{outcome.text or ''}")
        if isinstance(outcome, Skipped):
            return Result(name, "skipped")
    return Result(name, "passed")


def sort(results: list[Result]) -> tuple[dict[Known, list[Result]], list[Result]]:
    """The failures that the table explains, by its entries, and the others."""
    explained: dict[Known, list[Result]] = defaultdict(list)
    unknown = []
    for result in (each for each in results if each.kind == "failed"):
        for known in KNOWN:
            if known.explains(result.name, result.message):
                explained[known].append(result)
                break
        else:
            unknown.append(result)
    return explained, unknown


def main() -> int:
    """Run suites and print the sorted results; 1 if a failure is not explained."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--suite", action="append", choices=SUITES, help="by default all")
    parser.add_argument("--verbose", action="store_true", help="print the tests that the table explains")
    options, extra = parser.parse_known_args()
    import torch

    found = torch.accelerator.current_accelerator()
    if found is None:
        parser.error("no torch device is installed; `tpk new` makes a backend that has one")
    failed = False
    for name in options.suite or SUITES:
        results = list(run(options.checkout.resolve(), SUITES[name], found.type, extra))
        explained, unknown = sort(results)
        counts = {
            kind: sum(each.kind == kind for each in results) for kind in ("passed", "skipped", "failed")
        }
        print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
        for known, those in sorted(explained.items(), key=lambda item: -len(item[1])):
            print(f"  {len(those)} failed as known: {known.reason}")
            if options.verbose:
                print("".join(f"    {each.name}\n" for each in those), end="")
        for each in unknown:
            print(f"  FAILED {each.name}: {each.message.strip().splitlines()[:1]}")
        failed |= bool(unknown)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

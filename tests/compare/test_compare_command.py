"""`tpk compare`: a planted fault is named, a right backend never, and what is not compared is said."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from compare_helpers import PROGRAMS, Comparer

from triton_porting_kit.cli import main

SOURCE = PROGRAMS.read_text().splitlines()


def line_of(text: str) -> int:
    (number,) = (n for n, line in enumerate(SOURCE, 1) if line.strip().startswith(text))
    return number


def test_one_planted_fault_among_70_launches_is_named(compare: Comparer) -> None:
    """In the conversion from TTIR: sin is cos."""
    found = compare("seventy", "--keep-going", fault="sin-cos")
    assert found.status == 1, found.errors
    assert Counter(launch["status"] for launch in found.document["launches"]) == {"agrees": 69, "differs": 1}
    (launch,) = found.launches("differs")
    assert (launch["number"], launch["kernel"], launch["line"]) == (38, "waves", line_of("def waves("))
    assert launch["file"] == str(PROGRAMS)
    (array,) = launch["arrays"]
    assert (array["name"], array["wrong"], array["total"]) == ("out_ptr", 768, 768)
    assert [element["index"] for element in array["elements"]] == [0, 1, 2, 3, 4]
    cause = launch["cause"]
    assert cause["program"] == [0, 0, 0]
    assert cause["store"] == f"{PROGRAMS}:{line_of('tl.store(out_ptr + offsets, scaled * wave)')}"
    operation = cause["operation"]
    assert (operation["name"], operation["instead"]) == ("math.sin", "math.cos")
    assert operation["place"] == f"{PROGRAMS}:{line_of('wave = tl.sin(x)')}"
    assert f"launch 38 of 70 is wrong: kernel waves, {PROGRAMS}:{line_of('def waves(')}" in found.output
    assert "math.sin, which the backend replaced with math.cos" in found.output
    assert f"tpk replay {launch['capture']}" in found.output
    # What was recorded is wrong again when it is run again.
    command = [sys.executable, "-m", "triton_porting_kit.cli", "replay", launch["capture"]]
    again = subprocess.run(command, env=found.environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "all memory is identical to the recording" in again.stdout


def test_a_fault_behind_the_structured_form_is_named_by_its_operation(compare: Comparer) -> None:
    """A fault of the next stage: masked loads leave the last element out. It is found on the backend itself."""
    found = compare("seventy", fault="load-one-less")
    assert found.status == 1, found.errors
    (launch,) = found.launches("differs")
    assert (launch["number"], launch["kernel"]) == (1, "add")
    assert found.document["ended_early"]
    assert launch["cause"]["operation"]["name"] == "tpk.load"
    assert launch["cause"]["operation"]["place"].endswith(
        f":{line_of('x, y = tl.load(x_ptr + offsets, mask=inside)')}"
    )
    assert "after the backend's stage structured" in launch["cause"]["stage"]
    assert "the program was stopped at this launch" in found.output


def test_where_stores_are_wrong_no_operation_is_guessed(compare: Comparer) -> None:
    found = compare("seventy", fault="store-one-less")
    (launch,) = found.launches("differs")
    assert launch["cause"]["operation"] is None
    assert "suspect the store itself" in launch["cause"]["unknown"]
    # Elements 255, 511, 699: the last of each program.
    assert [element["index"] for element in launch["arrays"][0]["elements"]] == [255, 511, 699]


def test_on_a_right_backend_nothing_is_named(compare: Comparer) -> None:
    found = compare("one_of_each", fault="none")
    assert found.status == 0, found.output + found.errors
    counts = found.document["counts"]
    assert counts["differs"] == counts["not compared"] == 0
    assert counts["agrees"] >= 9  # which program gets which ticket is another each time
    assert not list(Path(found.environment["TRITON_CACHE_DIR"]).parent.glob("kept"))


def test_large_launches_and_those_between_samples_are_left_out(compare: Comparer) -> None:
    found = compare("sizes", "--every", "4", "--max-bytes", "64K")
    assert found.status == 0, found.output + found.errors
    launches = found.document["launches"]
    assert [launch["status"] == "agrees" for launch in launches] == [True, *[False] * 3, True, False, False]
    assert [launch["reason"] for launch in launches[1:4]] == ["--every leaves it out"] * 3
    assert launches[6]["reason"] == "it has more memory than --max-bytes allows: it would take 1.0 MiB"
    assert "copy: it has more memory" in found.output
    found = compare("sizes", "--kernel", "cop*")
    assert [launch["status"] for launch in found.document["launches"]] == ["not compared"] * 6 + ["agrees"]


def test_a_launch_that_raises_and_a_program_that_fails(compare: Comparer) -> None:
    found = compare("unhappy")
    assert found.status == 2
    assert "it raised AssertionFailed on the backend" in found.output
    assert "the program ended with status 1" in found.output
    assert "none of the launches could be compared" in found.errors


def test_a_program_without_launches(compare: Comparer) -> None:
    found = compare("nothing")
    assert found.status == 2
    assert "no kernel is launched" in found.output
    assert "launched no kernel that tpk can see" in found.errors
    assert "whose driver derives from triton_porting_kit.driver.adapter.TritonDriver" in found.errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.py"], "there is no file missing.py"),
        ([str(PROGRAMS), "--against", "gpu"], "there is no reference 'gpu'"),
        ([str(PROGRAMS), "--max-bytes", "much"], "--max-bytes is 'much'; set it to a number of bytes"),
        ([str(PROGRAMS), "--every", "0"], "--every"),
    ],
)
def test_mistakes(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TPK_WATCHDOG_MS", "TPK_DENORMALS"):
        monkeypatch.setenv(name, "")  # which the command sets
    with pytest.raises(SystemExit) as ended:
        main(["compare", *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

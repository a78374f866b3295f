"""`tpk interpret` from outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_helpers import PROGRAM, Outcome, Tpk, capture

from triton_porting_kit.cli import main


@pytest.fixture
def add(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The structured form of the kernel that adds two arrays and doubles the sum."""
    monkeypatch.chdir(tmp_path)
    signature = "*fp32, *bf16, *fp32, i32"
    command = ["compile", f"{kernels}:add_kernel", "-s", signature, "-c", "BLOCK=16"]
    with pytest.raises(SystemExit) as end:
        main([*command, "--emit", "structured", "-o", "add.structured"])
    assert not end.value.code
    return "add.structured"


def interpret(tpk: Tpk, text: str, args: str, *more: str) -> Outcome:
    return tpk("interpret", text, "--grid", "2", "--args", args, *more)


def test_arrays_of_numbers(tpk: Tpk, add: str) -> None:
    np.save("x.npy", np.array([1.0, 2.0, 3.0]))
    outcome = interpret(tpk, add, "x.npy, arange(20), zeros(4x5), 3", "-o", "out")
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.output.startswith("out_ptr (f32, 4x5):\n[[ 2.  6. 10.  0.  0.]\n")
    assert {path.name for path in Path("out").iterdir()} == {"x_ptr.npy", "y_ptr.npy", "out_ptr.npy"}
    assert np.load("out/out_ptr.npy").ravel()[:4].tolist() == [2, 6, 10, 0]
    assert np.load("out/y_ptr.npy").dtype == np.float32


def test_arguments_by_name(tpk: Tpk, add: str) -> None:
    outcome = interpret(tpk, add, "n=0, out_ptr=ones(2), y_ptr=random(2), x_ptr=null")
    assert (outcome.status, outcome.output) == (0, "the kernel changed no array\n")


def test_an_access_out_of_bounds(tpk: Tpk, add: str, kernels: Path) -> None:
    outcome = interpret(tpk, add, "ones(32), ones(32), zeros(20), 32")
    assert outcome.status == 1
    assert f"{kernels}:" in outcome.errors
    assert "tpk.store in program (1, 0, 0), element (4,): 4 bytes at 0x" in outcome.errors
    assert "0 bytes behind the end of out_ptr, which has 80" in outcome.errors


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("ones(2)", "--args lacks y_ptr, out_ptr, n; add_kernel takes x_ptr: *f32, y_ptr: *bf16, out_ptr: *f32, n: i32"),
        ("ones(2), ones(2), ones(2), 1, 2", "add_kernel has no parameter for '2'"),
        ("ones(2), ones(2), ones(2), m=1", "add_kernel has no parameter for 'm=1'"),
        ("ones(2), ones(2), ones(2), 1.5", "n has type i32, and '1.5' is not a number of this type"),
        ("ones(2), ones(2), 7, 1", "out_ptr is a pointer to f32, and '7' is not a valid argument for it: give FILE.npy, zeros(1000)"),
        (f"zeros({10**15}), ones(2), ones(2), 1", f"zeros({10**15}), given for x_ptr, is too large an array: Unable"),
        ("ones(2), ones(4294967296x4294967296), ones(2), 1", "ones(4294967296x4294967296), given for y_ptr, is too large"),
        (f"ones(2), ones(2), random({10**22}), 1", f"random({10**22}), given for out_ptr, is too large"),
        ("ones(2), none.npy, ones(2), 1", "NumPy cannot read none.npy, given for y_ptr"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(tpk: Tpk, add: str, args: str, message: str) -> None:
    outcome = interpret(tpk, add, args)
    assert outcome.status == 2
    assert outcome.errors.startswith(f"tpk: {message}")


def test_what_is_no_kernel(tpk: Tpk, tmp_path: Path, add: str) -> None:
    assert "there is no file or folder none" in tpk("interpret", "none").errors
    (tmp_path / "text").write_text("not MLIR")
    outcome = tpk("interpret", "text")
    assert outcome.status == 1
    assert "this is not valid MLIR" in outcome.errors
    outcome = tpk("interpret", add, "--grid", "2,x")
    assert (outcome.status, outcome.errors[:22]) == (2, "tpk: the grid '2,x' is")
    assert "no recorded launch" in tpk("interpret", str(tmp_path)).errors


def test_a_recorded_launch(
    tpk: Tpk, cpu_backend: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    capture("--kernel", "thrice", "program.py")
    outcome = tpk("interpret", "captures/0001-thrice", "-o", "out")
    assert (outcome.status, outcome.errors) == (0, "")
    first, *buffers = outcome.output.splitlines()
    assert first == "thrice, grid 1x1x1, 2 buffers of 512 bytes in all"
    assert [line.partition(" is ")[2] for line in buffers] == ["identical to the recording, bit for bit"] * 2
    found = [np.load(path).view(np.float32).tolist() for path in Path("out").iterdir()]
    assert sorted(found) == [list(range(64)), [3 * k for k in range(64)]]
    outcome = tpk("interpret", "captures/0001-thrice", "--grid", "3")
    assert (outcome.status, "leave out --grid and --args" in outcome.errors) == (2, True)

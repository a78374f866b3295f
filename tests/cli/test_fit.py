"""`tpk fit`, and the stages for a chip of `tpk compile`."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import Tpk

POINTERS = "*fp32:16, *fp32:16, *fp32:16, i32"
SUM = """
import triton
import triton.language as tl

@triton.jit
def sum_kernel(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK))))
"""
"""A tile that cannot be split."""


def test_what_fits_has_a_table(tpk: Tpk, kernels: Path) -> None:
    done = tpk("fit", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=1024")
    assert (done.status, done.errors) == (0, "")
    assert "add_kernel fits n1: 49,152 of 524,288 bytes of vector" in done.output
    assert done.output.count("20,480 vector") == 2  # what is loaded, for five programs
    assert done.output.count("8,192 vector") == 1  # what is stored, for two


def test_what_does_not_fit_says_the_nearest_size(tpk: Tpk, kernels: Path) -> None:
    file = kernels.with_name("sums.py")
    file.write_text(SUM)
    done = tpk("fit", f"{file}:sum_kernel", "-s", "*fp32:16, *fp32:16", "-c", "BLOCK=1048576")
    assert done.status == 1
    assert "sum_kernel needs 4,194,304 bytes of vector, which has 524,288" in done.output
    assert "the nearest tile sizes that fit: BLOCK=131072" in done.output


def test_what_is_split_fits(tpk: Tpk, kernels: Path) -> None:
    done = tpk("fit", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=131072")
    assert (done.status, done.errors) == (0, "")
    assert "add_kernel fits n1: 393,216 of 524,288 bytes of vector" in done.output  # three pieces, twice


def test_stages_for_a_chip(tpk: Tpk, kernels: Path, tmp_path: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--chip", "n1", "--emit"]
    assert '"tpk.npu_dma"' in tpk(*call, "tiles").output
    picture = tmp_path / "plan.svg"
    assert "address = 0" in tpk(*call, "placed", "--picture", picture).output
    assert picture.read_text().count('class="buffer"') == 3
    assert "llvm.call @tpk_npu_work" in tpk(*call, "loops").output


def test_mistakes(tpk: Tpk, kernels: Path) -> None:
    done = tpk("fit", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--chip", "m99")
    assert done.status == 2
    assert "m99" in done.errors
    kernels.with_suffix(".toml").write_text('name = "mine"', encoding="utf-16")
    for chip, said in (
        (kernels.parent, "cannot be read: Is a directory"),
        (kernels.with_suffix(".toml"), "UTF-8"),
    ):
        done = tpk("fit", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--chip", chip)
        assert done.status == 2
        assert said in done.errors
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64"]
    assert tpk(*call, "--picture", "x.svg").errors == (
        "tpk: a picture is of a chip's memories: name the chip with --chip\n"
    )
    assert "--summary is about" in tpk(*call, "--summary").errors


def test_summary(tpk: Tpk, kernels: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--summary"]
    assert "bytes: 768; 100 % transfers\n" in tpk(*call, "--chip", "n1").output
    assert "bytes: 768; 66.7 % memref.copy" in tpk(*call, "--emit", "linalg").output

"""`tpk compile`: every stage as text or file, and a sentence instead of a traceback for every mistake."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import Tpk

from triton_porting_kit.binaries.code_object import read_code_object

POINTERS = "*fp32:16, *fp32, *fp32, i32"

STAGES = {
    "source": "tt.func public @add_kernel",
    "ttir": "tt.load",
    "structured": '"tpk.load"',
    "loops": "llvm.func @add_kernel(%args: !llvm.ptr",
    "llir": "define i32 @add_kernel(ptr",
    "asm": "add_kernel:",
    "linalg": "memref.reinterpret_cast",
    "cpp": "int32_t add_kernel(const void *args, void *scratch, int64_t begin, int64_t end",
    "c": "int32_t add_kernel(const void *args, void *scratch, int64_t begin, int64_t end",
    "opencl": "__kernel void tpk_add_kernel(\n    __global char *args, __global char *scratch",
}


@pytest.mark.parametrize("stage", STAGES)
def test_stages_as_text(tpk: Tpk, kernels: Path, stage: str) -> None:
    done = tpk("compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--emit", stage)
    assert (done.status, done.errors) == (0, "")
    assert STAGES[stage] in done.output


def test_object_to_a_file_and_a_pipe(tpk: Tpk, kernels: Path, tmp_path: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--emit", "obj"]
    path = tmp_path / "add.o"
    assert tpk(*call, "--output", path).status == 0
    assert path.read_bytes().startswith(b"\x7fELF")
    assert tpk(*call).output.startswith("\x7fELF")


def test_object_to_a_terminal_is_refused(kernels: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "triton_porting_kit.cli", "compile", f"{kernels}:add_kernel"]
    arguments = ["-s", POINTERS, "-c", "BLOCK=64", "--emit", "obj"]
    done = subprocess.run([*command, *arguments], stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert done.stderr == "tpk: obj is binary; write it to a file with --output add_kernel.obj\n"


def test_signature_by_name_and_by_value(tpk: Tpk, kernels: Path) -> None:
    by_name = "out_ptr=*fp32, x_ptr=*fp32:16, y_ptr=*fp32, n=i32, BLOCK=64"
    in_order = tpk("compile", f"{kernels}:add_kernel", "-s", f"{POINTERS}, 64")
    assert in_order.status == 0
    assert "tt.divisibility = 16" in in_order.output
    assert tpk("compile", f"{kernels}:add_kernel", "-s", by_name).output == in_order.output


@pytest.mark.parametrize("kind", ["fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"])
def test_8_bit_floats_in_signatures(tpk: Tpk, kernels: Path, kind: str) -> None:
    done = tpk(
        "compile", f"{kernels}:add_kernel", "-s", f"{', '.join([f'*{kind}'] * 3)}, i32, 64", "--emit", "asm"
    )
    assert done.status == 0


def test_constants_may_be_names_of_the_file(tpk: Tpk, kernels: Path) -> None:
    done = tpk("compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=SIZE,F=twice")
    assert (done.status, "tensor<64xf32>" in done.output) == (0, True)


TUPLES = """
import triton
import triton.language as tl

@triton.jit
def tuple_kernel(T, n):
    x = tl.load(T[0]) * T[1][0]
    if T[1][1] is None:
        x += T[1][2]
    tl.store(T[0] + n, x)
"""


def test_tuples_in_the_signature(tpk: Tpk, tmp_path: Path) -> None:
    (tmp_path / "tuples.py").write_text(TUPLES)
    call = ["compile", f"{tmp_path / 'tuples.py'}:tuple_kernel", "--emit", "structured", "-s"]
    done = tpk(*call, "(*i32:16, (i32, None, 5)), i32")
    assert (done.status, done.errors) == (0, "")
    # One pointer, known to be aligned, and two integers: what is a value became a constant.
    assert done.output.count("tpk.pointee") == 1
    assert done.output.count("tpk.divisibility = 16") == 1
    assert re.search(r"%arg1: i32.*%arg2: i32", done.output)
    assert "%arg3" not in done.output
    assert "arith.constant 5 : i32" in done.output
    wrong = tpk(*call, "(*i32, (int, None, 5)), i32")
    assert wrong.status == 2
    assert "argument T[1][0] has the unknown type 'int'" in wrong.errors


def test_autotuned_kernels_are_unwrapped(tpk: Tpk, kernels: Path) -> None:
    assert tpk("compile", f"{kernels}:tuned_kernel", "-s", "*i32, i32, 64").status == 0


def test_interpreter_is_out_of_the_way(tpk: Tpk, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert tpk("compile", f"{kernels}:tuned_kernel", "-s", "*i32, i32, 64").status == 0


def test_kernels_of_installed_modules(tpk: Tpk) -> None:
    done = tpk("compile", "triton_porting_kit.kernels.softmax")
    assert (done.status, done.errors) == (
        2,
        "tpk: name a kernel, as in triton_porting_kit.kernels.softmax:KERNEL; the kernels are softmax_kernel\n",
    )


def test_file_of_a_package(tpk: Tpk, tmp_path: Path) -> None:
    package = tmp_path / "porcelain"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "sizes.py").write_text("import triton.language as tl\n\nSIZE = tl.constexpr(8)\n")
    (package / "cups.py").write_text(
        "import triton\nimport triton.language as tl\n\nfrom .sizes import SIZE\n\n\n"
        "@triton.jit\ndef cup(p):\n    tl.store(p + tl.arange(0, SIZE), 1.0)\n"
    )
    done = tpk("compile", f"{package / 'cups.py'}:cup", "-s", "*fp32")
    assert (done.status, "tensor<8x" in done.output) == (0, True)


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [("haswell", "ymm"), ("x86-64-v4", "zmm"), ("x86-64", "xmm"), ("neoverse-v1", "fadd\tv")],
)
def test_other_cpus(tpk: Tpk, kernels: Path, cpu: str, instruction: str) -> None:
    call = [
        "compile",
        f"{kernels}:add_kernel",
        "-s",
        POINTERS,
        "-c",
        "BLOCK=64",
        "--emit",
        "asm",
        "--cpu",
        cpu,
    ]
    done = tpk(*call)
    assert (done.status, done.errors) == (0, "")
    assert instruction in done.output


def test_features_are_taken_away(tpk: Tpk, kernels: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--emit", "asm"]
    output = tpk(*call, "--cpu", "sapphirerapids", "--features", "-avx512f").output
    assert "ymm" in output
    assert "zmm" not in output


def test_targets_of_other_backends(tpk: Tpk, kernels: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64"]
    assert "ttg.num-warps" in tpk(*call, "--target", "hip:gfx942:64", "--emit", "ttgir").output


@pytest.mark.parametrize(
    ("stage", "wanted"),
    [("source", "tt.load"), ("ttgir", "hip:gfx942"), ("llir", "amdgpu_kernel"), ("amdgcn", "buffer_load")],
)
def test_stages_for_amd_s_gpus(tpk: Tpk, kernels: Path, stage: str, wanted: str) -> None:
    pointers = "*fp32:16:2g, *fp32:16:2g, *fp32:16:2g, 64"
    call = ["compile", f"{kernels}:add_kernel", "-s", pointers, "-c", "BLOCK=64"]
    assert wanted in tpk(*call, "--backend", "amdgpu", "--arch", "gfx942", "--emit", stage).output


def test_a_code_object_to_a_file(tpk: Tpk, kernels: Path, tmp_path: Path) -> None:
    file = tmp_path / "add.hsaco"
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--backend", "amdgpu"]
    tpk(*call, "--arch", "gfx1201", "--emit", "hsaco", "-o", str(file))
    assert read_code_object(file.read_bytes()).arch == "gfx1201"


def test_options_out_of_range_for_amd(tpk: Tpk, kernels: Path) -> None:
    call = ["compile", f"{kernels}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--backend", "amdgpu"]
    done = tpk(*call, "--arch", "gfx942", "--option", "num_warps=32")
    assert done.status == 1
    assert "a workgroup of gfx942 has 1024 at most" in done.errors


MISTAKES = {
    "no file": (["nowhere.py:k"], "there is no file nowhere.py"),
    "no kernel named": (["{file}"], "the kernels are twice, add_kernel, tuned_kernel, broken_kernel"),
    "no such kernel": (["{file}:sub_kernel"], "sub_kernel is not defined; the kernels are twice, add_kernel"),
    "not a kernel": (["{file}:SIZE"], "SIZE is not a kernel; the kernels are"),
    "missing types": (
        ["{file}:add_kernel", "-s", "x_ptr=*fp32, n=i32", "-c", "BLOCK=64"],
        "the signature lacks a type for y_ptr, out_ptr",
    ),
    "missing constant": (
        ["{file}:add_kernel", "-s", POINTERS],
        "no value was given for BLOCK (--constants BLOCK=...)",
    ),
    "constexpr as type": (
        ["{file}:add_kernel", "-s", POINTERS + ", i32"],
        "BLOCK is a constexpr: give its value",
    ),
    "too many types": (["{file}:tuned_kernel", "-s", "*i32, i32, 4, i32"], "more than the 3 arguments"),
    "unknown argument": (
        ["{file}:add_kernel", "-s", "z=i32"],
        "add_kernel has no argument 'z'; it has x_ptr",
    ),
    "unknown type": (
        ["{file}:add_kernel", "-s", "*fp33"],
        "x_ptr has the unknown type '*fp33'; the types are i1",
    ),
    "unknown hint": (["{file}:add_kernel", "-s", "*fp32:8"], "x_ptr has the unknown hint '8'"),
    "bad constant": (
        ["{file}:add_kernel", "-s", POINTERS, "-c", "BLOCK"],
        "'BLOCK' is not of the form NAME=VALUE",
    ),
    "bad value": (["{file}:add_kernel", "-s", POINTERS, "-c", "BLOCK=big"], "the value 'big' is neither"),
    "unknown stage": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--emit", "ptx"],
        "has no stage 'ptx'; it has source, ttir, structured, loops, llir, obj, asm, cpp, c, opencl, linalg",
    ),
    "unknown option": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--option", "warps=4"],
        "there is no compile option 'warps'; the options are",
    ),
    "unknown cpu": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--cpu", "z80"],
        "the CPU 'z80' is not known",
    ),
    "bad feature": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--features", "avx2"],
        "'avx2' starts with neither + nor -",
    ),
    "unknown feature": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--cpu", "haswell", "--features", "-avx2, +avx512ff"],
        "x86_64 has no feature 'avx512ff'; there are avx512f",
    ),
    "feature of another CPU": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--cpu", "neoverse-n1", "--features", "+avx2"],
        "aarch64 has no feature 'avx2'; there are",
    ),
    "unknown backend": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--backend", "npu"],
        "there is no backend 'npu'; the registered ones are amd, amdgpu, cpu, nvidia",
    ),
    "unknown architecture": (
        ["{file}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--backend", "amdgpu", "--arch", "gfx1"],
        "there is no architecture 'gfx1'",
    ),
    "architecture of a CPU": (
        ["{file}:add_kernel", "-s", POINTERS, "-c", "BLOCK=64", "--arch", "gfx942"],
        "backend cpu does not support --arch; use --cpu",
    ),
    "architecture twice": (
        [
            "{file}:add_kernel",
            "-s",
            POINTERS,
            "-c",
            "BLOCK=64",
            "--arch",
            "gfx942",
            "--target",
            "hip:gfx942:64",
        ],
        "--target already names the architecture",
    ),
    "bad target": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "--target", "hip"],
        "'hip' is not of the form",
    ),
    "no writing": (
        ["{file}:add_kernel", "-s", POINTERS + ", 64", "-o", "/nowhere/at/all"],
        "/nowhere/at/all cannot be written: No such file or directory",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(tpk: Tpk, kernels: Path, mistake: str) -> None:
    arguments, message = MISTAKES[mistake]
    done = tpk("compile", *(argument.replace("{file}", str(kernels)) for argument in arguments))
    assert (done.status, done.output) == (2, "")
    assert message in done.errors
    assert done.errors.startswith("tpk: ")
    assert "Traceback" not in done.errors


def test_a_missing_device_is_explained(kernels: Path) -> None:
    """In a process of its own: in this one, another test may have loaded a library with devices."""
    command = [sys.executable, "-m", "triton_porting_kit.cli", "compile", f"{kernels}:add_kernel"]
    command += ["-s", POINTERS, "-c", "BLOCK=64", "--backend", "amdgpu"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"tpk: backend amdgpu .* name a target with --arch \(gfx90a, gfx942,", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_like_it", ":1: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def (", "SyntaxError: invalid syntax"),
        ("\n\nraise SystemExit('not today')", ":3: SystemExit: not today"),
    ],
)
def test_files_that_cannot_be_loaded(tpk: Tpk, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    done = tpk("compile", f"{path}:k")
    assert done.status == 2
    assert message in done.errors


def test_front_end_errors_show_the_line(tpk: Tpk, kernels: Path) -> None:
    done = tpk("compile", f"{kernels}:broken_kernel", "-s", "*fp32, 64")
    assert done.status == 1
    assert f"{kernels}: broken_kernel, defined at line 28, does not compile: at 2:" in done.errors
    assert "tl.store(x_ptr + tl.arange(0, BLOCK), undefined)" in done.errors
    assert "Traceback" not in done.errors


def test_backend_errors_show_the_line(tpk: Tpk, kernels: Path) -> None:
    done = tpk("compile", f"{kernels}:foreign_kernel", "-s", "*fp32, 64", "--emit", "structured")
    assert done.status == 1
    assert f"{kernels}:35:" in done.errors
    assert "inline_asm_elementwise" in done.errors
    assert "what to do:" in done.errors

"""AscendNPU-IR's compiler: its verdict on a kernel, and the way back from its HIVM to LLVM by its own passes."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

from triton_porting_kit.compiler import CpuTarget, artefacts
from triton_porting_kit.compiler.codegen import emit_object
from triton_porting_kit.toolchain import mlir

CHIPS = {
    "910B": ("bishengir-compile", "Ascend910B1", "External hivmc run fails"),
    "950": ("bishengir-compile-a5", "Ascend950PR_9579", "Cannot find hivmc-a5"),
}
"""The compiler, its target, and what its last open step says without the closed assembler behind it."""
OPTIONS = ("--enable-hfusion-compile=true", "--enable-triton-kernel-compile=true")
TIMEOUT_S = 120
BLOCK = "tpk_block_index"
"""A function that says which block of the grid runs, as a register of the chip does."""

BACK = (
    "builtin.module(execution-engine-convert-hfusion-to-upstream,execution-engine-convert-hivm-to-upstream,"
    "empty-tensor-to-alloc-tensor,one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=1},"
    "convert-bufferization-to-memref,annotation-lowering,expand-strided-metadata,convert-linalg-to-loops,"
    "canonicalize-ext,convert-scf-to-cf,lower-affine,arith-expand,convert-vector-to-llvm,convert-math-to-llvm,"
    "convert-math-to-libm,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,"
    "reconcile-unrealized-casts)"
)
"""The passes of AscendNPU-IR's pipeline `lower-for-cpu-runner-pipeline`, without those that wrap a host's function and
free buffers. Its HIVM is taken after bufferisation: before, the first pass refuses stores of tensors to memory."""
_AFTER = "(one-shot-bufferize)"


_REDUCTION = re.compile(r"^( *)hivm\.hir\.vreduce <(\w+)> .*outs\((%\w+) : (memref<.*>)\) .*$", re.M)
_NEUTRAL = {
    "sum": (0.0, 0), "prod": (1.0, 1), "max": (-math.inf, None), "min": (math.inf, None), "xori": (0.0, 0),
    "ori": (0.0, 0), "andi": (0.0, -1),
}  # fmt: skip
"""What a reduction begins with, of floats and of integers; None for the ends of the integers' range."""

COPY = """
struct unranked { long rank; void *descriptor; };
struct ranked { char *allocated, *aligned; long offset, numbers[]; };
void memrefCopy(long size, struct unranked *from, struct unranked *to) {
  struct ranked *a = from->descriptor, *b = to->descriptor;
  long rank = from->rank, count = 1;
  for (long d = 0; d < rank; d++) count *= a->numbers[d];
  for (long i = 0; i < count; i++) {
    long rest = i, x = a->offset, y = b->offset;
    for (long d = rank - 1; d >= 0; d--) {
      long at = rest % a->numbers[d];
      rest /= a->numbers[d];
      x += at * a->numbers[rank + d];
      y += at * b->numbers[rank + d];
    }
    __builtin_memcpy(b->aligned + y * size, a->aligned + x * size, size);
  }
}
"""
"""The routine of MLIR's own library that copies of strided memory call."""


class Refused(Exception):
    """A pass does not take a kernel; its errors."""


def folder(environment: Path) -> Path:
    """Where the wheel's programs are."""
    (found,) = environment.glob("lib/python*/site-packages/ascendnpuir/bin")
    for program in found.iterdir():
        program.chmod(0o755)
    return found


def verdict(programs: Path, path: Path, chip: str) -> str:
    """Empty if the last open step is reached, else the compiler's first error."""
    program, target, last = CHIPS[chip]
    command = [programs / program, path, *OPTIONS, f"--target={target}", "-o", path.with_suffix(f".{chip}.o")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"no result after {TIMEOUT_S} s"
    if last in done.stderr:
        return ""
    return _first_error(done)


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    errors = [line for line in done.stderr.splitlines() if "error: " in line.lower() or "Reason: " in line]
    errors = [line for line in errors if "Failed to run" not in line and "hivmc" not in line]
    if done.returncode < 0:
        return f"crash: {errors[0]}" if errors else f"crash, signal {-done.returncode}"
    return errors[0] if errors else f"exit status {done.returncode}: {done.stderr[:100]}"


def hivm(programs: Path, path: Path) -> str:
    """A kernel in the dialect HIVM for the 910B, after bufferisation. Raises `Refused`."""
    program, target, _ = CHIPS["910B"]
    command = [programs / program, path, *OPTIONS, f"--target={target}", "--mlir-print-ir-after-all"]
    done = subprocess.run(
        [*command, "-o", path.with_suffix(".o")], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    parts = re.split(r"^// -----// IR Dump After (.*)$", done.stderr, flags=re.M)[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if _AFTER in title:
            return str(text)
    raise Refused(_first_error(done))


def llvm_ir(programs: Path, path: Path) -> str:
    """LLVM IR of a kernel, which went to HIVM and came back. Raises `Refused`."""
    text = hivm(programs, path).replace("hivm.hir.get_block_idx ->", f"func.call @{BLOCK}() : () ->")
    text = re.sub(
        r"^module .*\{$", rf"\g<0>\n  func.func private @{BLOCK}() -> i64", text, count=1, flags=re.M
    )
    text = _REDUCTION.sub(_begin_reduction, text)
    source = path.with_suffix(".hivm.mlir")
    source.write_text(text)
    command = [programs / "bishengir-opt", source, f"--pass-pipeline={BACK}", "--mlir-print-op-generic"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise Refused(_first_error(done))
    module = artefacts.parse_mlir(_for_installed_mlir(done.stdout))
    with module.context:
        return mlir.to_llvm_ir(module)


def _begin_reduction(found: re.Match[str]) -> str:
    """Fill a reduction's result first: HIVM does not read it, but what the way back makes of a reduction does."""
    indent, kind, result, memory = found.groups()
    element = re.split(r"x|<", memory.split(",")[0].rstrip(">"))[-1]
    floating, whole = _NEUTRAL.get(kind, (0.0, 0))
    if whole is None:
        half = 1 << (int(re.sub(r"\D", "", element)) - 1)
        whole = -half if kind == "max" else half - 1
    number = f"{whole}"
    if not element.startswith("i"):
        ends = {math.inf: 0x7F8 << 20, -math.inf: 0xFF8 << 20}.get(floating)
        digits = {"f32": 8, "f16": 4, "bf16": 4}[element]
        number = f"{floating}" if ends is None else f"0x{_ends(element, ends):0{digits}X}"
    name = f"%begin_{found.start()}"
    return (
        f"{indent}{name} = arith.constant {number} : {element}\n"
        f"{indent}hivm.hir.vbrc ins({name} : {element}) outs({result} : {memory})\n{found[0]}"
    )


def _ends(element: str, bits: int) -> int:
    """An infinity of f32 as one of another type."""
    if element == "f32":
        return bits
    sign = bits >> 31 << 15
    return sign | (0x7C00 if element == "f16" else 0x7F80)


def _for_installed_mlir(text: str) -> str:
    """The dialect LLVM of LLVM 19 as the installed MLIR reads it, without attributes of other dialects."""

    def segments(found: re.Match[str]) -> str:
        count = len(found[1].split(",")) if found[1] else 0
        sizes = f"op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: {count}, 0>"
        return f'"llvm.call"({found[1]}) <{{{sizes}, '

    text = re.sub(r"^(\s*\}\)) \{.*\} : \(\) -> \(\)$", r"\1 : () -> ()", text, flags=re.M)
    text = re.sub(r"arg_attrs = \[.*?\], (?=function_type)", "", text)
    return re.sub(r'"llvm\.call"\(([^)]*)\) <\{', segments, text)


def library(programs: Path, path: Path) -> Path:
    """A shared library of a kernel that came back from HIVM. Raises `Refused`."""
    made = path.with_suffix(".so")
    if made.exists():
        return made
    object_, shim = path.with_suffix(".back.o"), path.with_suffix(".c")
    object_.write_bytes(emit_object(llvm_ir(programs, path), CpuTarget.host()))
    shim.write_text(
        f"static long block; long {BLOCK}(void) {{ return block; }} void tpk_set(long b) {{ block = b; }}"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, object_, shim, "-lm"], check=True)
    return made

"""Compiling kernels with one backend for one architecture, in a process of its own: `python -m benchmarks.amd_kernels`.

The kernels are those of the conformance suite's level `kernels` and of the demo, launched on arrays in this machine's
memory through a driver that only notes what was compiled. No GPU is needed, and none is used.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

#: Of the kernels of the suite, those that are compared by default: of each kind one, of products one of each type.
CHECKS = (
    "attention/bf16-2x64x64-causal",
    "attention-backward/bf16-2x64x64",
    "batched-matmul/fp16-7x16x48x31",
    "convolution/fp16-2x7x9x5-3x3x6-stride1-pad1",
    "cross-entropy/fp32-17x1000",
    "dropout/fp32-1025-p0.25-seed123456789",
    "embedding-backward/fp32-100x70-37",
    "gelu-residual/bf16-33x65",
    "grouped-matmul/bf16-four",
    "histogram/i32-1000-256bins",
    "int4-matmul/bf16-33x20x70",
    "layer-norm-backward/bf16-33x257",
    "matmul/bf16-128x128x128",
    "matmul/fp16-128x128x128",
    "matmul/fp32-128x128x128",
    "online-softmax/fp32-5x2000",
    "persistent-matmul/bf16-97x130x64",
    "prefix-sum/fp32-20000",
    "rms-norm/bf16-33x257",
    "rotary/bf16-9x6x80",
    "scaled-matmul/fp8e4nv-65x64x128-to-bf16",
    "scaled-matmul/i8-65x64x128-to-fp32",
    "softmax/bf16-64x781",
    "sort/fp32-2x256-ascending",
    "split-k-matmul/bf16-64x64x512-8",
    "top-k/fp32-2x256-top16",
    "transpose/fp32-33x70",
    "triangular-matmul/bf16-100x65",
)

#: What an instruction is for: the first prefix of its name that fits. Matrix instructions are counted by kind.
FAMILIES = (
    ("matrix", r"v_s?(mfma|wmma|mfmac|wmmac)"),
    ("lds", r"ds_"),
    ("atomic", r"(global|buffer|flat)_atomic"),
    ("load", r"(global|buffer|flat|tensor|cluster)_load"),
    ("store", r"(global|buffer|flat|tensor)_store"),
    ("scratch", r"scratch_"),
    ("scalar load", r"s_(buffer_)?load"),
    ("barrier", r"s_barrier"),
    ("branch", r"s_c?branch"),
    ("accumulation registers", r"v_accvgpr"),
    ("packed arithmetic", r"v_(dual|pk)_"),
    ("vector", r"v_"),
)
_PADDING = re.compile(r"s_(nop|code_end|delay_alu|wait\w*|endpgm)$")


@dataclass(frozen=True)
class Figures:
    """What a backend made of one kernel. Registers per thread (SGPRs per wavefront); sizes in bytes."""

    vgprs: int
    agprs: int
    sgprs: int
    spills: int
    """Registers, of both kinds."""
    lds: int
    code: int
    instructions: int
    families: dict[str, int]
    """How many instructions of each family; of matrix instructions each is one."""
    compile_ms: float
    options: dict[str, Any]


def family(mnemonic: str) -> str:
    """The family of an instruction; a matrix instruction's own name."""
    for name, pattern in FAMILIES:
        if re.match(pattern, mnemonic):
            return mnemonic if name == "matrix" else name
    return "waiting" if _PADDING.match(mnemonic) else "scalar"


def compile_kernels(
    backend: str, target: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Figures | str]]:
    """Name and figures of each kernel that is compiled for a target (``hip:gfx942:64``), or why it was not.

    Chosen by `wanted` are the suite's checks, by their names, and the demo's cases, as ``demo/...``.
    """
    import triton

    from benchmarks.cases import suite
    from triton_porting_kit.conformance.catalogue import checks
    from triton_porting_kit.conformance.context import Context
    from triton_porting_kit.conformance.profile import Profile
    from triton_porting_kit.conformance.sessions import open_session

    milliseconds: dict[str, float] = {}

    def listen(*, metadata: dict[str, Any], times: Any, **_: Any) -> None:
        milliseconds[metadata["hash"]] = times.total / 1e3

    triton.knobs.compilation.listener = listen
    jobs: dict[str, Callable[[Context], Any]] = {
        check.name.partition("/")[2]: check.body for check in checks(("kernels",)) if check.compiles
    }
    jobs |= {f"demo/{case.id}": _demo(case) for case in suite(quick=True)}
    with tempfile.TemporaryDirectory() as scratch:
        session = open_session(backend, Profile(), target=target, scratch=scratch)
        launched: list[Any] = triton.runtime.driver.active.launched
        for name, body in jobs.items():
            if not wanted(name):
                continue
            launched.clear()
            try:
                body(Context(session, name))
            except Exception as error:  # whatever it is, the other backend's kernel is still reported
                yield name, f"{type(error).__name__}: {error}".partition("\n")[0]
                continue
            seen: Counter[str] = Counter()
            for launch in {launch.metadata.hash: launch for launch in launched}.values():
                seen[launch.binary.name] += 1
                count = seen[launch.binary.name]
                label = f"{name} {launch.binary.name}" + (f" {count}" if count > 1 else "")
                yield label, _figures(launch, milliseconds.get(launch.metadata.hash, 0.0))


def _demo(case: Any) -> Callable[[Any], None]:
    """A case of the demo on arrays of the suite."""
    from triton_porting_kit.conformance.arrays import KIND_OF
    from triton_porting_kit.conformance.kernels.problem import operand

    def body(context: Any) -> None:
        operands = [operand(o.values, KIND_OF[o.dtype]) for o in case.operands()]
        case.launch([context.array(o.values, o.kind) for o in operands])

    return body


def _figures(launch: Any, compile_ms: float) -> Figures:
    from triton_porting_kit.binaries.code_object import read_code_object
    from triton_porting_kit.toolchain.amdgpu_disassembler import disassemble

    code_object = read_code_object(launch.binary.content)
    kernel = code_object.kernels[launch.binary.name]
    families = Counter(family(i.mnemonic) for i in disassemble(kernel.code, code_object.arch))
    # Where the code is padded to is no property of the compiler's.
    families.pop("waiting", None)
    metadata = launch.metadata._asdict()
    return Figures(
        vgprs=kernel.vgpr_count,
        agprs=kernel.agpr_count,
        sgprs=kernel.sgpr_count,
        spills=kernel.vgpr_spill_count + kernel.sgpr_spill_count,
        lds=kernel.group_segment_fixed_size + launch.metadata.shared,
        code=len(kernel.code),
        instructions=families.total(),
        families=dict(sorted(families.items())),
        compile_ms=round(compile_ms, 1),
        options={key: metadata[key] for key in _OPTIONS if key in metadata},
    )


_OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
    "enable_fp_fusion",
    "allow_flush_denorm",
    "warp_size",
)


def main() -> None:
    """Arguments: backend, target, a regular expression or nothing for `CHECKS` and the demo. Writes JSON lines."""
    backend, target, pattern = sys.argv[1:]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache

        def wanted(name: str) -> bool:
            return bool(re.search(pattern, name)) if pattern else name in CHECKS or name.startswith("demo/")

        for name, found in compile_kernels(backend, target, wanted):
            value = found if isinstance(found, str) else asdict(found)
            print(json.dumps({"name": name, "result": value}), flush=True)


if __name__ == "__main__":
    main()

"""Options: their defaults by architecture, what they change, and what is out of range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amd_compiling import ARCHITECTURES, compiled

from triton_porting_kit.backends.amd import options as amd_options
from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.compiler import KernelOptions
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat


def parse(target: str = "gfx942", /, **options: Any) -> KernelOptions:
    return AMDBackend(AMDBackend.target_of(target)).parse_options(options)


def test_defaults() -> None:
    options = parse()
    assert (options.backend_name, options.arch, options.warp_size) == ("amdgpu", "gfx942", 64)
    assert (options.num_warps, options.num_stages, options.kpack, options.waves_per_eu) == (4, 2, 1, 0)
    assert [name for name, _ in options.extern_libs] == ["ocml", "ockl"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_triton_reads_is_as_in_its_own_backend(arch: str) -> None:
    from triton.backends.amd.compiler import HIPBackend
    from triton.backends.compiler import GPUTarget

    ours = parse(arch, enable_fp_fusion=True)
    theirs = HIPBackend(GPUTarget("hip", arch, ours.warp_size)).parse_options({"enable_fp_fusion": True})
    not_the_same = {"backend_name", "schedule_hint", "extern_libs"}
    for name, value in vars(theirs).items():
        if name not in not_the_same:
            mine_too = getattr(ours, name, value)
            if name == "allowed_dot_input_precisions":
                value, mine_too = sorted(value), sorted(mine_too)
            assert mine_too == value, name
    assert set(dict(theirs.extern_libs)) == set(dict(ours.extern_libs))


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        ("gfx942", {"num_warps": 3}, "power of 2"),
        ("gfx942", {"num_warps": 0}, "num_warps is 0"),
        ("gfx942", {"num_warps": 32}, "2048 threads, and a workgroup of gfx942 has 1024"),
        ("gfx1100", {"num_warps": 64}, "give a power of 2 up to 32"),
        ("gfx942", {"num_ctas": 2}, "num_ctas is 2"),
        ("gfx942", {"num_stages": -1}, "num_stages is -1"),
        ("gfx942", {"waves_per_eu": 9}, "from 0 to 8 on gfx942"),
        ("gfx1100", {"waves_per_eu": 17}, "from 0 to 16 on gfx1100"),
        ("gfx942", {"waves_per_eu": -1}, "waves_per_eu is -1"),
        ("gfx942", {"waves_per_eu": 1.5}, "waves_per_eu is 1.5"),
        ("gfx942", {"matrix_instr_nonkdim": 8}, "give one of 0, 16, 32 on gfx942"),
        (
            "gfx1201",
            {"matrix_instr_nonkdim": 32},
            "give one of 0, 16 on gfx1201, whose matrix instructions are WMMA",
        ),
        ("gfx942", {"kpack": 3}, "kpack is 3"),
        ("gfx942", {"warp_size": 32}, "warp_size is 32"),
        ("gfx1100", {"wgp_cu_mode": "both"}, "give one of wgp, cu"),
        ("gfx942", {"schedule_hint": "fast"}, "schedule_hint is 'fast'"),
        ("gfx942", {"schedule_hint": 1}, "schedule_hint is 1"),
        ("gfx942", {"llvm_fn_attrs": 5}, "llvm_fn_attrs is 5"),
        ("gfx942", {"llvm_fn_attrs": "target-features=+xnack", "wgp_cu_mode": "cu"}, "target-features"),
        ("gfx942", {"extern_libs": {"mine": "/nowhere/mine.bc"}}, "mine.bc: No such file"),
        ("gfx942", {"arch": "gfx1"}, "no architecture 'gfx1'"),
        ("gfx942", {"instrumentation_mode": "fpsan"}, "instrumentation_mode"),
    ],
    ids=str,
)
def test_out_of_range(arch: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match="(?s)" + message.replace("(", r"\(")):
        parse(arch, **options)


def test_every_value_in_range_is_taken() -> None:
    for arch in ARCHITECTURES:
        for warps in (1, 2, 4, 8, 16):
            assert parse(arch, num_warps=warps).num_warps == warps
        for size in (0, 16):
            assert parse(arch, matrix_instr_nonkdim=size).matrix_instr_nonkdim == size
        assert parse(arch, num_stages=0).num_stages == 0
    assert parse("gfx1100", num_warps=32).num_warps == 32


def test_kpack_is_1_where_it_is_on_its_way_out() -> None:
    with pytest.warns(UserWarning, match="gfx950 compiles with kpack 1"):
        assert parse("gfx950", kpack=2).kpack == 1


def test_another_architecture_than_the_device_s(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse("gfx942")
    other = parse("gfx942", arch="gfx1100")
    assert (other.arch, other.warp_size, other.triton_target) == ("gfx1100", 32, "hip:gfx1100")
    assert options.hash() != other.hash()
    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "gfx90a")
    assert parse("gfx942").arch == "gfx90a"


def test_every_option_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        parse(**options).hash()
        for options in [
            {}, {"waves_per_eu": 2}, {"kpack": 2}, {"matrix_instr_nonkdim": 16}, {"use_buffer_ops": False},
            {"llvm_fn_attrs": "noinline"}, {"wgp_cu_mode": "cu"}, {"allow_flush_denorm": True},
        ]
    }  # fmt: skip
    assert len(keys) == 8
    monkeypatch.setenv("TRITON_HIP_USE_BLOCK_PINGPONG", "0")
    assert parse().hash() not in keys


def test_a_changed_library_is_another_key(tmp_path: Path) -> None:
    library = tmp_path / "mine.bc"
    keys = []
    for content in (b"BC\xc0\xde", b"BC\xc0\xdf"):
        library.write_bytes(content)
        keys.append(parse(extern_libs={"mine": str(library)}).hash())
    assert keys[0] != keys[1]


def test_attributes_for_llvm() -> None:
    assert parse(llvm_fn_attrs=" a = b, c").llvm_fn_attrs == (("a", "b"), ("c", ""))
    kernel = compiled("add", llvm_fn_attrs="amdgpu-sched-strategy=max-ilp,cold")
    assert '"amdgpu-sched-strategy"="max-ilp"' in kernel.asm["llir"]
    assert '"cold"' in kernel.asm["llir"]


@pytest.mark.parametrize(
    ("arch", "options", "attribute"),
    [
        ("gfx942", {"waves_per_eu": 3}, '"amdgpu-waves-per-eu"="3,3"'),
        ("gfx942", {"num_warps": 8}, '"amdgpu-flat-work-group-size"="1,512"'),
        ("gfx1100", {"num_warps": 8}, '"amdgpu-flat-work-group-size"="1,256"'),
        ("gfx1100", {"wgp_cu_mode": "cu"}, "+cumode"),
    ],
    ids=str,
)
def test_options_reach_llvm(arch: str, options: dict[str, Any], attribute: str) -> None:
    assert attribute in compiled("add", arch, **options).asm["llir"]


def test_flushed_denormals() -> None:
    assert "preserve-sign" in compiled("add", allow_flush_denorm=True).asm["llir"].replace(
        "preservesign", "preserve-sign"
    )
    assert "preserve-sign" not in compiled("add").asm["llir"].replace("preservesign", "preserve-sign")


def test_buffer_operations_for_one_kernel() -> None:
    assert "buffer_load" in compiled("add").asm["amdgcn"]
    plain = compiled("add", use_buffer_ops=False).asm["amdgcn"]
    assert "buffer_load" not in plain
    assert "global_load" in plain


def test_the_address_sanitizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ENABLE_ASAN", "1")
    with pytest.raises(OptionError, match="no address sanitizer"):
        parse()


@pytest.mark.parametrize("release", compat.TRIED, ids=str)
def test_the_tables_of_every_release(release: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is selected on other releases than the installed one has the arguments that its options give."""
    from triton_porting_kit.backends.amd import passes

    options = parse(schedule_hint="attention")
    names = [
        row.name
        for table in (passes.TTIR, passes.TTGIR, passes.LLIR)
        for row in passes.select(table, options, release)
    ]
    assert ("ttir.rewrite_tensor_pointer" in names) == (release <= (3, 7))
    assert ("amd.ttgpuir.membar" in names) == (release >= (3, 9))
    assert ("amd.ttgpuir.insert_instruction_sched_hints" in names) == (release <= (3, 7))
    assert names.count("amd.ttgpuir.accelerate_matmul") == 1


def test_hints_are_those_that_are_documented() -> None:
    assert amd_options.HINTS == ("none", "attention", "memory-bound-attention")
    assert parse(schedule_hint="attention,memory-bound-attention").second_hint == "memory-bound-attention"

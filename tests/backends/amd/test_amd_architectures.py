"""Every stage on every architecture, and what the code objects say of themselves."""

from __future__ import annotations

import pytest
from amd_compiling import ARCHITECTURES, STAGES, compiled, instructions
from amd_kernels import matmul_arguments
from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.backends.amd.targets import architecture
from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat

MATRIX = {"mfma": "v_mfma_", "wmma": "v_wmma_"}


def test_the_installed_triton_has_them() -> None:
    assert ARCHITECTURES[:5] == ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
    assert ("gfx1250" in ARCHITECTURES) == (compat.release() >= (3, 7))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_stages(arch: str) -> None:
    kernel = compiled("matmul", arch)
    assert tuple(name for name in kernel.asm if name != "source") == STAGES
    assert "tt.dot" in kernel.asm["ttir"]
    assert f'ttg.target = "hip:{arch}"' in kernel.asm["ttgir"]
    assert "define amdgpu_kernel void @matmul(" in kernel.asm["llir"]
    assert ".amdhsa_kernel matmul" in kernel.asm["amdgcn"]
    assert kernel.asm["hsaco"].startswith(b"\x7fELF")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_code_object(arch: str) -> None:
    kernel = compiled("matmul", arch, num_warps=8)
    found = read_code_object(kernel.asm["hsaco"])
    assert found.arch == arch
    assert list(found.kernels) == [kernel.metadata.name] == ["matmul"]
    matmul = found.kernels["matmul"]
    assert matmul.wavefront_size == architecture(arch).warp_size
    assert matmul.max_flat_workgroup_size == 8 * matmul.wavefront_size
    # Triton's lowering takes all local memory at the launch.
    assert matmul.group_segment_fixed_size == 0
    assert matmul.dynamic_group_segment_size == kernel.metadata.shared > 0


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("element", ["i32", "fp32", "fp64"])
def test_exchanges(element: str, arch: str) -> None:
    """LLVM has no exchange of f64 by buffer instructions and ends the process over one; before 3.9 it has none."""
    types = {"x": f"*{element}", "out": f"*{element}"}
    found = instructions(compiled("exchange", arch, arguments=(types, {"BLOCK": 256})).asm["amdgcn"])
    (swap,) = {name for name in found if "swap" in name}
    way = "buffer" if element != "fp64" and compat.release() >= (3, 9) else "global"
    sizes = ("_x2", "_b64") if element == "fp64" else ("", "_b32")
    assert swap in [f"{way}_atomic_swap{size}" for size in sizes]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["add", "softmax", "power"])
def test_kernels_without_products(name: str, arch: str) -> None:
    kernel = compiled(name, arch)
    found = read_code_object(kernel.asm["hsaco"]).kernels[name]
    assert found.dynamic_group_segment_size == kernel.metadata.shared
    assert not [
        line for line in instructions(kernel.asm["amdgcn"]) if line.startswith(tuple(MATRIX.values()))
    ]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_are_matrix_instructions(arch: str) -> None:
    wanted = MATRIX[architecture(arch).matrix]
    used = {line for line in instructions(compiled("matmul", arch).asm["amdgcn"]) if line.startswith(wanted)}
    assert used
    assert all("bf16" in line for line in used)


@pytest.mark.parametrize(
    ("arch", "operand", "result", "wanted"),
    [
        ("gfx90a", "fp64", "fp64", "v_mfma_f64"),
        ("gfx942", "fp8e4b8", "fp32", "v_mfma_f32_"),
        ("gfx950", "fp8e4nv", "fp32", "v_mfma_"),
        ("gfx1100", "i8", "i32", "v_wmma_i32_"),
        ("gfx1201", "fp8e4nv", "fp32", "v_wmma_f32_16x16x16_fp8"),
    ],
)
def test_products_of_other_types(arch: str, operand: str, result: str, wanted: str) -> None:
    kernel = compiled("matmul", arch, arguments=matmul_arguments(operand, result))
    assert [line for line in instructions(kernel.asm["amdgcn"]) if line.startswith(wanted)]


def test_descriptors_are_made_in_the_kernel() -> None:
    for arch in ARCHITECTURES:
        assert compiled("gather_rows", arch).asm["hsaco"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_descriptors_for_what_copy_hardware_cannot(arch: str) -> None:
    """Those for anything else are copied by hardware where there is some."""
    copied = {
        name: any("tensor_load" in line for line in instructions(compiled(name, arch).asm["amdgcn"]))
        for name in ("gather_rows", "sums_by_descriptor", "padded_with_nan")
    }
    assert copied == {"gather_rows": arch == "gfx1250", "sums_by_descriptor": False, "padded_with_nan": False}
    assert any("atomic" in line for line in instructions(compiled("sums_by_descriptor", arch).asm["amdgcn"]))


def test_descriptors_that_are_arguments_come_in_parts() -> None:
    """As many arguments as the launcher sends, on every architecture: also where hardware knows descriptors."""
    counts = set()
    for arch in ARCHITECTURES:
        found = read_code_object(compiled("from_descriptor", arch).asm["hsaco"]).kernels["from_descriptor"]
        explicit = [row for row in found.arguments if not row.value_kind.startswith("hidden")]
        counts.add(len(explicit))
    flags = len(compat.descriptor_flags())
    # Address, 2 strides of 64 bits, flags, shape and strides again; then `out`, and two that Triton's lowering appends.
    assert counts == {1 + 2 + 2 + flags + 2 + 2 + 1 + 2}


# --- names -------------------------------------------------------------------------------------------


def test_target_of() -> None:
    assert AMDBackend.target_of("gfx942") == GPUTarget("amdgpu", "gfx942", 64)
    assert AMDBackend.target_of("gfx1100") == GPUTarget("amdgpu", "gfx1100", 32)


@pytest.mark.parametrize("name", ["gfx906", "sm_90", "", "gfx942:xnack+"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=r"give one of gfx90a, gfx942, gfx950, gfx1100, gfx1201"):
        AMDBackend.target_of(name)
    with pytest.raises(OptionError, match=r"no architecture"):
        AMDBackend(GPUTarget("amdgpu", name, 64))


def test_an_architecture_of_later_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat.releases, "release", lambda: (3, 6))
    assert "gfx1250" not in AMDBackend.architectures()
    with pytest.raises(OptionError, match=r"gfx1250; 3.7 and later do"):
        AMDBackend.target_of("gfx1250")


def test_only_its_own_targets() -> None:
    assert AMDBackend.supports_target(GPUTarget("amdgpu", "gfx942", 64))
    assert not AMDBackend.supports_target(GPUTarget("hip", "gfx942", 64))

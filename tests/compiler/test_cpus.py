"""CPUs by name, and their features changed."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler import CpuTarget, cpus
from triton_porting_kit.errors import OptionError


@pytest.mark.parametrize(
    ("cpu", "vector_bytes", "triple"),
    [
        ("x86-64", 16, "x86_64-unknown-linux-gnu"),
        ("haswell", 32, "x86_64-unknown-linux-gnu"),
        ("znver5", 64, "x86_64-unknown-linux-gnu"),
        ("neoverse-n1", 16, "aarch64-unknown-linux-gnu"),
    ],
)
def test_named(cpu: str, vector_bytes: int, triple: str) -> None:
    target = CpuTarget.named(cpu)
    assert (target.cpu, target.vector_bytes, target.triple) == (cpu, vector_bytes, triple)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="'z80' is not known; there are x86-64"):
        CpuTarget.named("z80")


def test_features_go_with_what_needs_them() -> None:
    target = CpuTarget.named("sapphirerapids").with_features("-avx512f, -amx-tile")
    assert target.features == CpuTarget.named("haswell").features | {"avxvnni"}
    assert {"avx512f", "avx512bf16", "amx-tile", "amx-bf16"} <= target.absent
    assert "-avx512bf16" in target.feature_string


@pytest.mark.parametrize(
    ("absent", "gone", "kept"),
    [
        ("avx512f", "avx512dq", "avx2"),
        ("fma", "avx512vl", "avx2"),
        ("avx2", "avx512f", "avx"),
        ("avx", "f16c", "neon"),
        ("avx512bw", "avx512bf16", "avx2"),
        ("amx-tile", "amx-int8", "avx2"),
        ("sse4.1", "avx", "ssse3"),
    ],
)
def test_features_without_what_they_need(absent: str, gone: str, kept: str) -> None:
    """As an option names them; LLVM ends the process if it is given an instruction of `gone`."""
    target = CpuTarget.of("x86_64-unknown-linux-gnu", "sapphirerapids", f"-{absent},+{gone},+{kept}")
    assert target.features == {kept}


def test_the_host_without_a_feature_that_others_need() -> None:
    assert not any(name.startswith("avx512") for name in CpuTarget.host("avx512f").features)
    assert CpuTarget.host("avx") == CpuTarget.host("avx,f16c,fma")


@pytest.mark.parametrize("name", ["64bit", "sse", "sse2"])
def test_features_that_x86_64_requires(name: str) -> None:
    with pytest.raises(OptionError, match=rf"no code for x86_64.* without {name}") as raised:
        CpuTarget.of("x86_64-unknown-linux-gnu", "haswell", f"-{name}")
    assert "TPK_CPU_WITHOUT" in str(raised.value)
    assert CpuTarget.of("aarch64-unknown-linux-gnu", "neoverse-n1", f"-{name}").features == frozenset()


@pytest.mark.parametrize("part", ["avx512f", "avx512bw", "avx512dq", "avx512vl"])
def test_avx512_is_used_as_a_whole(part: str) -> None:
    target = CpuTarget.named("znver4").with_features(f"-{part}")
    assert target.vector_bytes == 32
    assert not target.rounds_to_bf16
    assert {"avx512f", "avx512bf16"} <= target.absent


def test_features_come_back() -> None:
    target = CpuTarget.named("znver4")
    again = target.with_features("-avx512vbmi").with_features("+avx512vbmi")
    assert again == target


def test_changes_need_a_sign() -> None:
    with pytest.raises(ValueError, match="'avx2' starts with neither"):
        CpuTarget.named("x86-64").with_features("avx2")


def test_upper_halves_of_products_are_those_of_x86() -> None:
    assert CpuTarget.named("x86-64").multiplies_high
    assert not CpuTarget.named("neoverse-n1").multiplies_high
    assert not CpuTarget.portable().multiplies_high


@pytest.mark.parametrize(
    ("guess", "without", "cpu"),
    [
        ("graniterapids", ("none",), "graniterapids"),
        (
            "graniterapids",
            ("amx-",),
            "sapphirerapids",
        ),  # not an AMD, although that has the same vectors of bf16
        ("znver5", ("none",), "znver5"),
        ("znver5", ("avxvnni",), "znver4"),
        ("graniterapids", ("amx-", "avx512"), "haswell"),
    ],
)
def test_scheduling_where_the_system_hides_features(guess: str, without: tuple[str, ...], cpu: str) -> None:
    target = CpuTarget.named(guess)
    features = {feature for feature in target.features if not feature.startswith(without)}
    assert cpus.scheduling_cpu(target.triple, guess, features) == cpu


def test_pairs_of_bf16_are_for_cpus_on_which_they_are_fast() -> None:
    assert CpuTarget.named("znver4").multiplies_bf16_pairs
    assert not CpuTarget.named("cascadelake").multiplies_bf16_pairs
    assert CpuTarget.named("sapphirerapids").rounds_to_bf16
    assert not CpuTarget.named("sapphirerapids").multiplies_bf16_pairs

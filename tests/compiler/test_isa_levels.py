"""The levels that kernels are tried on: what each is compiled for, here and where it does not run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from triton_porting_kit.compiler import ISA_LEVELS, CpuTarget, IsaLevel
from triton_porting_kit.toolchain import llvm

REGISTERS = {"sse2": 16, "avx": 32, "avx2": 32, "avx512": 64, "neon": 16}

PRINTED = "from triton_porting_kit.compiler import CpuTarget; print(CpuTarget.host().feature_string)"

HERE = [level for level in ISA_LEVELS.values() if level.arch == platform.machine()]


def test_every_level_has_its_registers() -> None:
    assert {name: level.target().vector_bytes for name, level in ISA_LEVELS.items()} == REGISTERS


@pytest.mark.parametrize("name", ISA_LEVELS)
def test_a_level_is_a_cpu_of_other_hosts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    level = ISA_LEVELS[name]
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert level.missing() == {level.arch}
    assert level.target() == CpuTarget.named(level.cpu)
    assert level.target().vector_bytes == REGISTERS[name]


@pytest.mark.parametrize("level", HERE, ids=lambda level: level.name)
def test_only_what_the_level_has_is_left(level: IsaLevel) -> None:
    if level.missing():
        pytest.skip(f"this CPU lacks {', '.join(sorted(level.missing()))}")
    assert level.target().features <= level.features
    # Names are taken away by their beginnings; none of the level's own may go with them.
    there = {name for name, found in llvm.host_features().items() if found}
    assert level.target().features == there & level.features


@pytest.mark.parametrize("level", HERE, ids=lambda level: level.name)
def test_a_process_of_the_level_compiles_for_its_target(level: IsaLevel) -> None:
    if level.missing():
        pytest.skip(f"this CPU lacks {', '.join(sorted(level.missing()))}")
    environment = {**os.environ, **level.environment()}
    done = subprocess.run(
        [sys.executable, "-c", PRINTED], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == level.target().feature_string == level.options()["cpu_features"]
    assert level.target() == CpuTarget.of(*level.options().values())

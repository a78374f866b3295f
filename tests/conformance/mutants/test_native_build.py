"""Changed C++, built and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.conformance.mutants import sources
from triton_porting_kit.conformance.mutants.client import Nursery, Server
from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation
from triton_porting_kit.conformance.mutants.native_build import Built, NativeBuild, NoMutant
from triton_porting_kit.conformance.mutants.native_reach import measure_native
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.unit import CHECKS, Unit, program

ALLOCATOR = "driver/host/native/allocator.cpp"
UNIT = Unit(CHECKS, "runtime/copies/htod-65-at-7", ("runtime/copies/htod-65-at-7",))


def mutation(path: str) -> Mutation:
    return Mutation(path, CPP, "planted", 0, 0, "", 1, (1, 1))


@pytest.mark.slow
def test_a_change_is_loaded(tmp_path: Path) -> None:
    files = sources.files((CPP,))
    build = NativeBuild(tmp_path, jobs=2)
    for path in (ALLOCATOR, "driver/host/native/job.h", "launcher/native/packed.cpp"):
        with (
            pytest.raises(NoMutant, match="the same code"),
            Built(build, mutation(path), files[path].read_bytes()),
        ):
            pass
    with pytest.raises(NoMutant, match="does not compile"), Built(build, mutation(ALLOCATOR), b"int x = ;"):
        pass
    dies = files[ALLOCATOR].read_bytes() + b"\n#include <cstdlib>\nstatic int dead = (std::abort(), 1);\n"
    with Built(build, mutation(ALLOCATOR), dies) as modules, Nursery("driver") as nursery:
        assert list(modules) == ["triton_porting_kit.driver.host._host"]
        with Server(nursery, modules) as server:
            assert server.failure is not None
            assert server.failure.kind == "crash"


@pytest.mark.slow
def test_lines_of_levels(tmp_path: Path) -> None:
    reach = Reach()
    units = [UNIT, program(7_000_000)]
    for unit in units:
        reach.add(unit.name, 1.0, {})
    assert measure_native(reach, units, jobs=1, threads=2, save=lambda: None, report=print, end=float("inf"))
    assert set(reach.native) == {"runtime/copies", "program"}
    path = "driver/host/native/bindings.cpp"
    text = sources.files((CPP,))[path].read_text().splitlines()
    htod = next(number for number, line in enumerate(text, 1) if '("memcpy_htod", "dst"' in line)
    assert htod in reach.native_lines("runtime/copies", path)
    printed = reach.code["driver/host/native/print.cpp"]
    assert len(printed) > 20
    assert not reach.native_lines("runtime/copies", "driver/host/native/print.cpp")
    there = Mutation(path, CPP, "planted", 0, 0, "", htod, (htod, htod))
    assert "runtime/copies" in reach.groups_reaching(there)
    silent = Mutation("driver/host/native/print.cpp", CPP, "planted", 0, 0, "", 1, (printed[3], printed[3]))
    assert reach.groups_reaching(silent) == set()

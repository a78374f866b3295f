"""Faults that are planted in a backend's registration, options, hashes and stages are caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from levels_helpers import failing
from triton.backends import backends

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler.options import KernelOptions

Patch = pytest.MonkeyPatch


def hash_of_the_moment(patch: Patch) -> None:
    count = itertools.count()
    patch.setattr(CPUBackend, "hash", lambda self: f"cpu-{next(count)}")


def takes_every_target(patch: Patch) -> None:
    patch.setattr(CPUBackend, "supports_target", staticmethod(lambda target: True))


def one_hash_for_all_options(patch: Patch) -> None:
    patch.setattr(KernelOptions, "hash", lambda self: "options")


def options_by_order(patch: Patch) -> None:
    patch.setattr(KernelOptions, "hash", lambda self: str(id(self)))


def drops_options(patch: Patch) -> None:
    right = CPUBackend.parse_options
    patch.setattr(CPUBackend, "parse_options", lambda self, options: right(self, {}))


def remembers_options(patch: Patch) -> None:
    right, kept = CPUBackend.parse_options, {}

    def parse_options(self: Any, options: dict[str, Any]) -> Any:
        kept.update(
            {name: value for name, value in options.items() if name in ("num_warps", "num_stages", "debug")}
        )
        return right(self, {**options, **kept})

    patch.setattr(CPUBackend, "parse_options", parse_options)


def lacks_a_default(patch: Patch) -> None:
    right = CPUBackend.parse_options

    def parse_options(self: Any, options: dict[str, Any]) -> Any:
        parsed = right(self, options)
        del parsed.__dict__["allowed_dot_input_precisions"]
        return parsed

    patch.setattr(CPUBackend, "parse_options", parse_options)


def takes_any_number_of_warps(patch: Patch) -> None:
    patch.setattr("triton_porting_kit.compiler.options._check_counts", lambda values: None)


def stages_only_once(patch: Patch) -> None:
    right, seen = CPUBackend.add_stages, []

    def add_stages(self: Any, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        right(self, stages, options, language)
        if seen:
            stages.pop(next(name for name in stages if name != "ttir"))
        seen.append(True)

    patch.setattr(CPUBackend, "add_stages", add_stages)


def stages_reversed(patch: Patch) -> None:
    right = CPUBackend.add_stages

    def add_stages(self: Any, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        found: dict[str, Any] = {}
        right(self, found, options, language)
        stages.update(reversed(found.items()))

    patch.setattr(CPUBackend, "add_stages", add_stages)


def two_names(patch: Patch) -> None:
    patch.setitem(backends, "twin", backends["cpu"])


def no_stream(patch: Patch) -> None:
    patch.setattr(CPUDriver, "get_current_stream", lambda self, device=None: None)


def no_types(patch: Patch) -> None:
    patch.setattr(CPUDriver, "map_python_to_cpp_type", lambda self, ty: "int64_t")


FAULTS = [
    (hash_of_the_moment, ["hashes/backend", "hashes/backend-in-fresh-process"]),
    (
        takes_every_target,
        ["coexistence/target-cuda", "coexistence/target-hip", "coexistence/target-unheard-of"],
    ),
    (one_hash_for_all_options, ["hashes/option-num_warps", "hashes/option-debug", "cache/options-apart"]),
    (options_by_order, ["hashes/options", "options/arguments-ignored"]),
    (drops_options, ["options/kept-num_warps-8", "options/kept-debug-True", "hashes/kernel-num_warps"]),
    (remembers_options, ["options/defaults-fresh"]),
    (lacks_a_default, ["options/default-allowed_dot_input_precisions", "options/dictionary"]),
    (takes_any_number_of_warps, ["options/refused-num_warps-3", "options/refused-num_warps-0"]),
    (stages_only_once, ["stages/repeatable"]),
    (stages_reversed, ["stages/first", "stages/last"]),
    (two_names, ["discovery/one-compiler-for-target", "coexistence/names", "coexistence/target-cpu"]),
    (no_stream, ["discovery/stream"]),
    (no_types, ["discovery/cpp-type-i8", "discovery/cpp-type-u64", "discovery/cpp-type-i32"]),
]


@pytest.mark.parametrize(("plant", "catchers"), FAULTS, ids=[plant.__name__ for plant, _ in FAULTS])
def test_fault_is_caught(plant: Callable[[Patch], None], catchers: list[str], monkeypatch: Patch) -> None:
    names = [f"registration/{name}" for name in catchers]
    with monkeypatch.context() as patch:
        plant(patch)
        assert failing("registration", names) == names
    assert failing("registration", names) == []

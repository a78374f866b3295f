"""What programs are compiled for, and with how many threads they run."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest
import triton.backends

from triton_porting_kit.compiler import ISA_LEVELS
from triton_porting_kit.conformance.stress.configuration import (
    DEFAULT,
    NoSuchConfiguration,
    configurations,
    levels_of,
)

HERE = [name for name, level in ISA_LEVELS.items() if not level.missing()]


def test_nothing_said_is_the_backends_own() -> None:
    assert configurations("cpu") == (DEFAULT,)


def test_each_level_that_this_machine_runs() -> None:
    found = configurations("cpu", "each")
    assert [c.isa for c in found] == HERE
    assert dict(found[0].options) == ISA_LEVELS[HERE[0]].options()


def test_levels_and_threads_are_combined() -> None:
    found = configurations("cpu", ",".join(HERE[:2]), "1, 2")
    assert [str(c) for c in found] == [f"{name}, {n}" for name in HERE[:2] for n in ("1 thread", "2 threads")]
    assert found[1].environment == {"TPK_NUM_THREADS": "2"}


def test_levels_that_are_not_there_are_said() -> None:
    with pytest.raises(NoSuchConfiguration, match=f"no instruction-set level 'avx99'.*there are {HERE[0]}"):
        configurations("cpu", "avx99")


def test_options_of_a_second_run_have_values_of_python() -> None:
    (found,) = configurations("cpu", HERE[0], against="form=linalg,num_stages=5,debug=True")
    own = ISA_LEVELS[HERE[0]].options()
    assert dict(found.against) == {"form": "linalg", "num_stages": 5, "debug": True}
    assert (dict(found.first.options), found.first.against) == (own, ())
    assert (dict(found.second.options), found.second.against) == ({**own, **dict(found.against)}, ())


@pytest.mark.parametrize("threads", ["0", "many", "1,,2", "-1", "5000"])
def test_counts_of_threads_are_checked(threads: str) -> None:
    with pytest.raises(NoSuchConfiguration, match="counts from 1 to 1024"):
        configurations("cpu", threads=threads)


def test_a_backend_without_levels_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiler:
        @staticmethod
        def isa_levels() -> Mapping[str, Mapping[str, str]]:
            return {}

    known = {"none": SimpleNamespace(compiler=object), "empty": SimpleNamespace(compiler=Compiler)}
    monkeypatch.setattr(triton.backends, "backends", {**triton.backends.backends, **known})
    for backend in known:
        assert levels_of(backend) == {}
        with pytest.raises(NoSuchConfiguration, match=f"'{backend}' names no instruction-set levels"):
            configurations(backend, "each")
    assert configurations("none", threads="2")[0].threads == 2

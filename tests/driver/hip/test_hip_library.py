"""Where HIP's library is looked for, and what is said where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from standin_library import Standin

from triton_porting_kit.driver.hip import HipDevice, device_count, find_library, library, open_library
from triton_porting_kit.errors import ToolchainError

ORIGINS = [
    "TPK_HIP_LIBRARY",
    "TRITON_LIBHIP_PATH",
    "loaded in this process",
    "torch",
    "ROCM_PATH",
    "HIP_PATH",
    "the package rocm_sdk",
    "ROCm's usual folder",
    "the dynamic loader's path",
]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without ROCm, whatever this one has, and whatever other tests have loaded."""
    for variable in (*library.VARIABLES, "ROCM_PATH", "HIP_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(library, "NAME", "libnothip64.so")
    monkeypatch.setattr(library, "_SONAMES", ("libnothip64.so.7", "libnothip64.so"))
    monkeypatch.setattr(library, "_GPU_FILES", ("/dev/null",))
    monkeypatch.setattr(library, "find_spec", lambda name: None)


def put(folder: Path, name: str = "libnothip64.so") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"not a library")
    return str(folder / name)


def test_every_place_is_named() -> None:
    search = find_library()
    assert search.path is None
    assert [place.origin for place in search.places] == ORIGINS
    for origin in ORIGINS:
        assert origin in search.report()


def test_opening_without_a_library_says_what_was_looked_at() -> None:
    for call in (open_library, HipDevice):
        with pytest.raises(ToolchainError) as caught:
            call()
        assert "/opt/rocm/lib/libnothip64.so" in str(caught.value)
        assert "set TPK_HIP_LIBRARY" in str(caught.value)
    assert device_count() == 0


@pytest.mark.parametrize("variable", library.VARIABLES)
def test_a_variable_decides(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    put(tmp_path / "rocm" / "lib")
    path = put(tmp_path / "mine", "any-name.so")
    monkeypatch.setenv(variable, path)
    assert find_library().path == path
    monkeypatch.setenv(variable, str(tmp_path / "nothing.so"))
    search = find_library()
    assert search.path is None
    assert [place.origin for place in search.places] == [variable]


def test_the_kit_s_variable_goes_before_triton_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in library.VARIABLES:
        monkeypatch.setenv(variable, put(tmp_path, variable))
    assert find_library().path == str(tmp_path / library.VARIABLES[0])


def test_rocm_is_found_by_its_variables_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_PATH", str(tmp_path / "hip"))
    path = put(tmp_path / "hip" / "lib")
    assert find_library().path == path
    assert find_library().places[-1].origin == "HIP_PATH"
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    put(tmp_path / "rocm" / "elsewhere")
    assert find_library().path == path
    path = put(tmp_path / "rocm" / "lib")
    assert find_library().path == path


def test_of_several_versions_the_latest_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    for version in ("6", "10.1", "10", "9.9.9"):
        put(tmp_path / "lib", f"libnothip64.so.{version}")
    assert find_library().path == str(tmp_path / "lib" / "libnothip64.so.10.1")
    plain = put(tmp_path / "lib")
    assert find_library().path == plain


@pytest.mark.parametrize(
    ("package", "origin"), [("torch", "torch"), ("_rocm_sdk_core", "the package rocm_sdk")]
)
def test_packages_are_not_imported(
    package: str, origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.machinery import PathFinder

    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise RuntimeError('it was imported')")
    path = put(tmp_path / package / "lib")
    monkeypatch.setattr(library, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)]))
    search = find_library()
    assert search.path == path
    assert search.places[-1].origin == origin


def test_what_the_process_has_loaded_is_taken(
    standin_library: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "NAME", standin_library.path.name)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    put(tmp_path / "lib", standin_library.path.name)
    search = find_library()
    assert search.path == str(standin_library.path)
    assert search.places[-1].origin == "loaded in this process"


def test_the_loader_s_path_comes_last(standin_library: Standin) -> None:
    """In a process of its own: the loader reads its path when a process starts."""
    program = "from triton_porting_kit.driver.hip import find_library; print(find_library().report())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"LD_LIBRARY_PATH": str(standin_library.path.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "libamdhip64.so, found by: the dynamic loader's path"


def test_a_file_that_is_no_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_HIP_LIBRARY", put(tmp_path))
    with pytest.raises(ToolchainError, match=r"libnothip64.so does not open: .*found by: TPK_HIP_LIBRARY"):
        open_library()
    assert device_count() == 0


def test_a_library_of_other_functions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_porting_kit.launcher import _packed

    monkeypatch.setenv("TPK_HIP_LIBRARY", _packed.__file__)
    with pytest.raises(
        ToolchainError, match=r"lacks 33 functions of HIP \(hipGetErrorName, .*ROCm 6.0 or later"
    ):
        open_library()


def test_nothing_is_opened_where_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_GPU_FILES", (str(tmp_path / "kfd"),))

    def never() -> None:
        raise AssertionError("it was looked for")

    monkeypatch.setattr(library, "find_library", never)
    assert device_count() == 0


def test_devices_are_counted(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(standin.path))
    assert device_count() == 1
    standin.configure("gfx942", "gfx90a", "gfx1100")
    assert device_count() == 3
    standin.arm("hipGetDeviceCount:1:100")  # hipErrorNoDevice
    assert device_count() == 0
    standin.arm("hipGetDeviceCount:1:999")
    assert device_count() == 0

"""Recorded launches as C++ programs: they build, run without Python, and see what differs."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import clang_format
import numpy as np
import pytest
from emitted_programs import build, for_virtual_npu, run
from replay_helpers import Recorder

from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay import ReplayRuntime, emit_cpp, read

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """A built program, and the files that it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, build(folder)


@pytest.fixture(scope="module")
def plain_program(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("emitted") / "plain"
    emit_cpp(read(recorder("plain").launches[0]), folder)
    return Program(folder)


def test_the_host_replays(plain_program: Program, tmp_path: Path) -> None:
    done = run(plain_program.path, "--repeat", "2", "--dump", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "run 2: " in done.stdout
    assert done.stdout.endswith("all memory is identical to the recording\n")
    for number in range(3):
        data = plain_program.folder / "data"
        after = data / f"buffer-{number}.after.bin"
        expected = after if after.is_file() else data / f"buffer-{number}.before.bin"
        assert (tmp_path / f"buffer-{number}.bin").read_bytes() == expected.read_bytes()


def test_one_thread_is_enough(plain_program: Program) -> None:
    assert run(plain_program.path, TPK_NUM_THREADS="1").returncode == 0


def test_denormals_by_the_variable(plain_program: Program, tmp_path: Path) -> None:
    """By the rule of the device, whose kernel it is."""
    data = tmp_path / "data"
    shutil.copytree(plain_program.folder / "data", data)
    # Buffers are numbered by their addresses; what the kernel writes has contents of its own afterwards.
    (result,) = (number for number in range(3) if (data / f"buffer-{number}.after.bin").is_file())
    one, other = (data / f"buffer-{number}.before.bin" for number in range(3) if number != result)
    count = one.stat().st_size // 4
    one.write_bytes(np.full(count, 1e-40, np.float32).tobytes())
    other.write_bytes(np.zeros(count, np.float32).tobytes())
    found = {}
    for word in ("keep", "flush"):
        (tmp_path / word).mkdir()
        run(plain_program.path, "--data", str(data), "--dump", str(tmp_path / word), TPK_DENORMALS=word)
        found[word] = np.fromfile(tmp_path / word / f"buffer-{result}.bin", np.float32)
    assert not found["flush"].any()
    assert 0 < found["keep"].max() < np.finfo(np.float32).tiny
    done = run(plain_program.path, TPK_DENORMALS="maybe")
    assert done.returncode == 1
    assert "TPK_DENORMALS is 'maybe'; set it to keep" in done.stderr


def test_no_python_is_in_it(plain_program: Program) -> None:
    linked = subprocess.run(
        ["ldd", str(plain_program.path)], capture_output=True, text=True, check=True
    ).stdout
    assert "libstdc++" in linked
    assert "python" not in linked


def test_a_difference_is_seen(plain_program: Program, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(plain_program.folder / "data", data)
    (after,) = data.glob("*.after.bin")
    content = bytearray(after.read_bytes())
    content[4 * 17] ^= 1
    after.write_bytes(content)
    done = run(plain_program.path, "--data", str(data))
    assert done.returncode == 1
    assert (
        "(out_ptr: *fp32): element [17] is 0x427c0000 (63), recorded was 0x427c0001 (63.0000038)"
        in done.stderr
    )
    assert "memory differs from the recording" in done.stdout


def test_files_that_are_cut_off_are_seen(plain_program: Program, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(plain_program.folder / "data", data)
    (data / "arguments.bin").write_bytes(b"short")
    done = run(plain_program.path, "--data", str(data))
    assert done.returncode == 1
    assert "arguments.bin does not have the recorded size of 32 bytes" in done.stderr
    assert run(plain_program.path, "--data", str(tmp_path / "none")).returncode == 1
    assert "usage:" in run(plain_program.path, "--wrong").stderr


def test_routines_of_the_host_are_in_the_program(recorder: Recorder, tmp_path: Path) -> None:
    """Of mathematics, and printing."""
    emit_cpp(read(recorder("functions").launches[0]), tmp_path / "p")
    done = run(build(tmp_path / "p"), TPK_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert "pid (0, 0, 0) idx ( 5) x: 5\n" in done.stdout


def test_a_failing_assertion_is_told(recorder: Recorder, tmp_path: Path) -> None:
    emit_cpp(read(recorder("assertion").launches[0]), tmp_path / "p")
    done = run(build(tmp_path / "p"))
    assert done.returncode == 1
    assert "a device-side assertion failed in program (0, 0, 0), element (1): " in done.stderr
    assert "not positive" in done.stderr


def test_a_crash_is_reproduced(recorder: Recorder, tmp_path: Path) -> None:
    emit_cpp(read(recorder("crash").launches[1]), tmp_path / "p")
    text = (tmp_path / "p" / "main.cpp").read_text()
    assert "// The recorded process ended during the launch." in text
    assert "replay::compare" not in text
    assert run(build(tmp_path / "p")).returncode == -11


def test_sources_are_formatted(recorder: Recorder, tmp_path: Path) -> None:
    """As clang-format writes them: `main.cpp` is read, in a debugger too."""
    capture = read(recorder("functions").launches[0])
    for runtime, recorded in (("host", capture), ("vnpu", for_virtual_npu(capture))):
        emit_cpp(recorded, tmp_path / runtime, runtime)
        shutil.copy(ROOT / ".clang-format", tmp_path / runtime)
        sources = [path.name for path in (tmp_path / runtime).iterdir() if path.suffix in (".cpp", ".h")]
        command = [clang_format.get_executable("clang-format"), "--dry-run", "-Werror", *sources]
        done = subprocess.run(command, cwd=tmp_path / runtime, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


# --- runtimes ----------------------------------------------------------------------------------------


class Vendor(ReplayRuntime):
    """A runtime of a vendor's own."""

    name = "the Acme A1"
    includes = ("<acme.h>",)
    cmake = "find_package(acme CONFIG REQUIRED)"
    libraries = ("acme::runtime",)
    open = "acme::Device device;"
    load = 'auto kernel = device.load(options.read("{{ file }}", {{ size }}), "{{ kernel }}");'
    allocate = "{{ address }} = device.allocate({{ size }}, {{ alignment }});"
    copy_in = "device.write({{ address }}, {{ host }}.data(), {{ size }});"
    launch = "kernel.launch({{ x }}, {{ y }}, {{ z }}, {{ arguments }}, {{ size }});"
    wait = "device.wait();"
    copy_out = "device.read({{ host }}.data(), {{ address }}, {{ size }});"
    free = "device.free({{ address }});"
    close = ""


def test_vendors_give_their_own_calls(recorder: Recorder, tmp_path: Path) -> None:
    capture = read(recorder("aliases").launches[0])
    emit_cpp(capture, tmp_path, f"{__name__}:Vendor")
    text = (tmp_path / "main.cpp").read_text()
    for line in (
        "#include <acme.h>",
        "  acme::Device device;",
        '  auto kernel = device.load(options.read("kernel.obj", ',
        "  buffer_0 = device.allocate(384, ",
        "  arguments.arg_y_ptr = buffer_0 + 128;",
        "    device.write(buffer_0, before_0.data(), 384);",
        "    kernel.launch(1, 1, 1, &arguments, sizeof arguments);",
        "    device.read(after_0.data(), buffer_0, 384);",
    ):
        assert line in text
    cmake = (tmp_path / "CMakeLists.txt").read_text()
    assert "find_package(acme CONFIG REQUIRED)" in cmake
    assert "target_link_libraries(replay PRIVATE acme::runtime)" in cmake


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        ("", "does not name a runtime for C\\+\\+ programs"),
        ("acme", "'acme' is not a runtime: name host, vnpu, or MODULE:NAME"),
        ("nowhere.at.all:Runtime", "cannot be loaded"),
        ("triton_porting_kit.errors:CaptureError", "is not a runtime"),
    ],
)
def test_runtimes_that_are_none(recorder: Recorder, tmp_path: Path, runtime: str, message: str) -> None:
    capture = read(recorder("plain").launches[0])
    unnamed = dataclasses.replace(capture, manifest=dataclasses.replace(capture.manifest, runtime=""))
    with pytest.raises(CaptureError, match=message):
        emit_cpp(unnamed, tmp_path / "p", runtime)
    assert not (tmp_path / "p").exists()


def test_what_cannot_be_replayed_is_not_written(recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="the memory of a pointer is not recorded"):
        emit_cpp(read(recorder("unknown_memory").launches[0]), tmp_path / "p")
    capture = for_virtual_npu(read(recorder("plain").launches[0]))
    with pytest.raises(CaptureError, match="the binary is not code for the host CPU"):
        emit_cpp(capture, tmp_path / "p", "host")

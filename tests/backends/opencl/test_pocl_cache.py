"""PoCL's cache belongs to one process, and a kernel is built once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.opencl import OpenCLDevice, pocl


@triton.jit
def double_kernel(x, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2)


def test_only_the_first_device_is_asked_for_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(pocl.CACHE, raising=False)
    with pocl.prepared():
        folder = os.environ[pocl.CACHE]
        assert Path(folder).is_dir()
    assert pocl.CACHE not in os.environ
    with pocl.prepared():
        assert os.environ[pocl.CACHE] == folder


def test_what_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(pocl.CACHE, str(tmp_path))
    monkeypatch.setenv("POCL_WORK_GROUP_SPECIALIZATION", "1")
    with pocl.prepared():
        assert os.environ[pocl.CACHE] == str(tmp_path)
    assert os.environ[pocl.CACHE] == str(tmp_path)
    assert os.environ["POCL_WORK_GROUP_SPECIALIZATION"] == "1"


ENDS = """
import os
from triton_porting_kit.driver.opencl import pocl

with pocl.prepared():
    folder = os.environ[pocl.CACHE]
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(folder, os.path.isdir(folder))
"""


def test_it_is_removed_at_the_end_of_its_process() -> None:
    environment = {name: value for name, value in os.environ.items() if name != pocl.CACHE}
    done = subprocess.run(
        [sys.executable, "-c", ENDS], env=environment, capture_output=True, text=True, check=True
    )
    folder, there = done.stdout.split()
    assert there == "True"  # after the end of a forked process
    assert not Path(folder).exists()


BUILDS = """
from triton_porting_kit.driver.opencl import build_source, device_infos

info = device_infos()[0]
for number in range(6):
    assert build_source(info, f"__kernel void k(__global int *x) {{ x[get_global_id(0)] += {number}; }}")
"""


def test_processes_build_at_once(opencl: OpenCLDevice) -> None:
    """As with one cache for all of them, where PoCL aborts now and then."""
    started = [
        subprocess.Popen([sys.executable, "-c", BUILDS], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in started:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said


@pytest.mark.skipif(pocl.CACHE in os.environ, reason="the cache is the user's")
def test_a_kernel_is_built_once(opencl: OpenCLDevice) -> None:
    if "Portable Computing Language" not in str(opencl.properties().extra["platform"]):
        pytest.skip("the first device is not PoCL's")
    x = DeviceArray.zeros((64,), "int32", opencl)
    double_kernel[(1,)](x, BLOCK=64)
    opencl.synchronize()
    with pocl.prepared():
        built = [path.parent.name for path in Path(os.environ[pocl.CACHE]).rglob("*double_kernel.so")]
    assert built == ["0-0-0"]

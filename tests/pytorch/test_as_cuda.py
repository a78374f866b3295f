"""Programs that say ``cuda``, on CPU tensors and on a torch device, each in a process of its own."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.errors import CudaNotMapped

HERE = Path(__file__).parent
PROGRAMS = HERE / "cuda_programs"
ON_CHIP = f"import sys; sys.path.insert(0, {str(HERE)!r}); import host_backend; host_backend.register()\n"
SWITCH_ON = "import triton_porting_kit.pytorch.as_cuda\n"


@pytest.fixture
def environment(inductor_cache: Path, tmp_path: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    return environment | {"TRITON_CACHE_DIR": str(tmp_path / "triton")}


def tpk(environment: dict[str, str], *arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_porting_kit.cli", "run", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def python(environment: dict[str, str], script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("layers.py", "--autocast"), ("launchers.py",)])
def test_programs_run_on_tensors_of_the_cpu(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    program, *others = arguments
    done = tpk(environment, "--as-cuda", "--backend", "cpu", PROGRAMS / program, *others)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ok", *others]
    said = [line for line in done.stderr.splitlines() if "as_cuda" in line]
    assert len(said) == 1
    assert "'cuda' is 'cpu'" in said[0]


@pytest.mark.parametrize("program", ["layers.py", "launchers.py"])
def test_programs_run_on_a_torch_device(environment: dict[str, str], program: str) -> None:
    script = (
        f"{ON_CHIP}{SWITCH_ON}import runpy; runpy.run_path({str(PROGRAMS / program)!r}, run_name='__main__')"
    )
    done = python(environment, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ok"]
    assert "'cuda' is 'test_chip', and Triton runs on the backend 'testchip2'" in done.stderr


def test_without_it_nothing_is_changed(environment: dict[str, str]) -> None:
    done = tpk(environment, "--backend", "cpu", PROGRAMS / "launchers.py")
    assert done.returncode == 1
    assert "as_cuda" not in done.stderr
    script = "import torch, triton_porting_kit.pytorch; assert not torch.cuda.is_available(); torch.ones(1, device='cuda')"
    done = python(environment, script)
    assert done.returncode == 1
    # A torch built with CUDA looks for a driver.
    assert re.search("Torch not compiled with CUDA enabled|Found no NVIDIA driver", done.stderr)


REFUSALS = """
import os, torch, triton
from triton_porting_kit.errors import CudaNotMapped
def refuses(call, *words):
    try:
        call()
    except CudaNotMapped as error:
        assert all(word in str(error) for word in ("what to do", *words)), error
    else:
        raise AssertionError(words)
refuses(lambda: torch.ones(1, device="cuda:1"), "cuda:1", "there is one device")
refuses(lambda: torch.ones(1).cuda(2), "cuda:2")
refuses(lambda: torch.cuda.set_device(3), "cuda:3")
refuses(lambda: torch.cuda.CUDAGraph(), "torch.cuda.CUDAGraph", "docs/pytorch.md")
refuses(lambda: torch.cuda.memory_allocated(), "torch.cuda.memory_allocated")
os.environ["TPK_CUDA_CAPABILITY"] = "9.0"
assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_properties(0).major == 9
os.environ["TPK_CUDA_CAPABILITY"] = "hopper"
refuses(torch.cuda.get_device_capability, "TPK_CUDA_CAPABILITY=hopper", "9.0")
assert type(triton.runtime.driver.active).__name__ == "CPUDriver"
triton.runtime.driver.reset_active()
assert type(triton.runtime.driver.active).__name__ == "CPUDriver"
active = [name for name, backend in triton.backends.backends.items() if backend.driver.is_active()]
assert active == ["cpu"], active
"""


def test_what_cannot_be_mapped_says_so(environment: dict[str, str]) -> None:
    """And one driver of Triton's is active, although `torch.cuda.is_available` says that CUDA is there."""
    done = python({**environment, "TRITON_DEFAULT_BACKEND": "cpu"}, SWITCH_ON + REFUSALS)
    assert done.returncode == 0, done.stderr


def test_other_backends_are_refused(environment: dict[str, str]) -> None:
    done = python({**environment, "TRITON_DEFAULT_BACKEND": "nvidia"}, SWITCH_ON)
    assert "CudaNotMapped: as_cuda cannot map the Triton backend 'nvidia'" in done.stderr
    assert re.search(r"set TRITON_DEFAULT_BACKEND to one of .*\bcpu\b", done.stderr)


def test_modules_arguments_and_the_exit_status(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, beside\n"
        "assert __name__ == '__main__' and sys.argv == [__file__, '--flag', 'x'], sys.argv\n"
        "assert os.environ['TRITON_DEFAULT_BACKEND'] == 'cpu'\n"
        "sys.exit(beside.VALUE)\n"
    )
    for options in ((), ("--as-cuda",)):
        done = tpk(environment, *options, "--backend", "cpu", program, "--flag", "x")
        assert done.returncode == 5, done.stderr
    done = tpk(environment, "--as-cuda", "--backend", "cpu", "-m", "json.tool", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m json.tool")


def test_what_cannot_be_run(environment: dict[str, str]) -> None:
    done = tpk(environment, "--backend", "nosuchchip", PROGRAMS / "layers.py")
    assert done.returncode == 2
    assert "there is no Triton backend 'nosuchchip'; installed are" in done.stderr
    done = tpk(environment, "missing.py")
    assert done.returncode == 2
    assert "there is no file missing.py" in done.stderr


def test_the_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(CudaNotMapped("x", "y")))
    assert (error.what, error.remedy, str(error)) == ("x", "y", "as_cuda cannot map x\n  what to do: y")

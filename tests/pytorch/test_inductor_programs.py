"""What programs compile beside torch's operators: sizes that vary, Triton kernels of their own; and caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from host_backend import BACKEND, NAME


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x_ptr + offsets, inside) + tl.load(y_ptr + offsets, inside)
    tl.store(out_ptr + offsets, total, inside)


tuned_kernel = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])(
    add_kernel
)


@torch.library.triton_op("tpk_tests::add", mutates_args={})
def add_operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(add_kernel)[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


def add_directly(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


def add_tuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return out


@pytest.mark.parametrize("add", [add_directly, add_tuned, add_operator], ids=["direct", "tuned", "operator"])
def test_kernels_of_programs_are_compiled(chip: Any, add: Any) -> None:
    x, y = torch.randn(300), torch.randn(300)
    compiled = torch.compile(lambda x, y: add(x * 2, y).relu(), fullgraph=True)
    torch.testing.assert_close(compiled(x.to(NAME), y.to(NAME)).cpu(), (x * 2 + y).relu())
    assert chip.fallbacks() == {}


def test_one_compilation_serves_sizes_that_vary(chip: Any) -> None:
    from torch._dynamo.utils import counters

    compiled = torch.compile(lambda x, w: (x @ w).relu() + x[0, 0], dynamic=True)
    w = torch.randn(20, 8)
    graphs = counters["stats"]["unique_graphs"]
    for rows in (5, 33, 130):
        x = torch.randn(rows, 20)
        result = compiled(x.to(NAME), w.to(NAME)).cpu()
        torch.testing.assert_close(result, (x @ w).relu() + x[0, 0], atol=1e-4, rtol=1e-4)
    assert counters["stats"]["unique_graphs"] == graphs + 1
    assert chip.fallbacks() == {}


def test_products_are_tuned(chip: Any) -> None:
    x, w = torch.randn(40, 20), torch.randn(20, 8)
    compiled = torch.compile(lambda x, w: x @ w, options={"max_autotune": True})
    torch.testing.assert_close(compiled(x.to(NAME), w.to(NAME)).cpu(), x @ w, atol=1e-4, rtol=1e-4)
    assert "aten.mm.out" not in chip.fallbacks()  # what is measured are templates


PROGRAM = """
import json, sys, host_backend
chip = host_backend.register()
import torch, triton.knobs
compiled = []
triton.knobs.compilation.listener = lambda *, cache_hit, **about: compiled.append(cache_hit)
x = torch.arange(60.0).reshape(6, 10).to(host_backend.NAME)
result = torch.compile(lambda x: (x * 2).sum(0))(x)
eager = x.exp()
from torch._dynamo.utils import counters
found = {name: counters["inductor"][name] for name in ("fxgraph_cache_hit", "fxgraph_cache_miss")}
print(json.dumps({"sum": result.sum().item(), "triton_misses": compiled.count(False), **found}))
"""


WITH_WORKERS = """
import json, torch
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile
import triton.knobs
assert config.compile_threads == 2 and config.worker_start_method == "subprocess"
AsyncCompile.wait_pool_ready()
compiled = []
triton.knobs.compilation.listener = lambda *, cache_hit, **about: compiled.append(cache_hit)
x = torch.arange(60.0).reshape(6, 10).to("test_chip")
result = torch.compile(lambda x: (x * 2).sum(0))(x)
print(json.dumps({"sum": result.cpu().sum().item(), "triton_misses": compiled.count(False)}))
"""


def install(folder: Path) -> None:
    """Make the backend of these tests a package that new processes find."""
    package = folder / "host_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "compiler.py").write_text("from host_backend import TestCompiler\n")
    (package / "driver.py").write_text("from host_backend import TestDriver\n")
    # Importing Triton imports the two above, so it comes before `host_backend`.
    (package / "device.py").write_text(
        "def register():\n    import triton\n    import host_backend\n    host_backend.register()\n"
    )
    info = folder / "host_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: host-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[triton.backends]\n{BACKEND} = host_package\n[torch.backends]\n{BACKEND} = host_package.device:register\n"
    )


def run(folder: Path, program: str = PROGRAM, **more: str) -> dict[str, Any]:
    """What a process finds whose caches are in a folder."""
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **caches, **more},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["sum"] == 2 * sum(range(60))
    return found


def test_a_second_process_compiles_nothing(inductor_cache: Path, tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first["fxgraph_cache_miss"] > 0
    assert first["triton_misses"] > 0
    assert second["fxgraph_cache_miss"] == second["triton_misses"] == 0
    assert second["fxgraph_cache_hit"] == first["fxgraph_cache_miss"]


def test_other_processes_compile(inductor_cache: Path, tmp_path: Path) -> None:
    install(tmp_path)
    found = run(
        tmp_path,
        WITH_WORKERS,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
        TORCHINDUCTOR_COMPILE_THREADS="2",
        TRITON_DEFAULT_BACKEND=BACKEND,
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(Path(__file__).parent)]),
    )
    assert found["triton_misses"] == 0

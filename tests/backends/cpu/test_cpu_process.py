"""What launches leave alone of the process that they run in, and what they do not take from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_kernels import double_elements
from cpu_scripts import Script

from triton_porting_kit.errors import GridError, SignatureError
from triton_porting_kit.toolchain import launches

_LONG = """
import os, signal, sys, threading
@triton.jit
def count(out, turns):
    for _ in range(turns):
        tl.atomic_add(out, 1)
counter = array(np.zeros(1, np.int32))
count[(1,)](counter, 1)
def send(number):
    while True:
        before = counter.numpy()[0]
        if before > 1000:
            return os.kill(os.getpid(), number)
"""


def test_ctrl_c_ends_a_launch_and_the_device_goes_on(script: Script) -> None:
    out = script(
        _LONG
        + """
threading.Thread(target=send, args=(signal.SIGINT,)).start()
try:
    count[(2**31 - 1,)](counter, 100)
except KeyboardInterrupt:
    left = counter.numpy()[0]
    assert counter.numpy()[0] == left
    x, y = array([1.0, 2.0]), array([0.0, 0.0])
    double_elements[(1,)](x, y, 2, BLOCK=2)
    print(y.numpy().tolist())
"""
    )
    assert out == "[2.0, 4.0]\n"


def test_what_a_handler_raises_comes_out_of_the_launch(script: Script) -> None:
    """Whatever its type: those of refused arguments are kept apart."""
    out = script(
        _LONG
        + """
class Enough(TypeError): pass
def handler(number, frame):
    raise Enough("enough of this")
signal.signal(signal.SIGTERM, handler)
threading.Thread(target=send, args=(signal.SIGTERM,)).start()
try:
    count[(2**31 - 1,)](counter, 100)
except Enough as error:
    print(error)
"""
    )
    assert out == "enough of this\n"


def test_the_watchdog_names_the_kernel(script: Script) -> None:
    result = script.run(_LONG + "count[(2**31 - 1,)](counter, 100)", TPK_WATCHDOG_MS="100")
    assert "LaunchTimeout: host CPU: launch: kernel 'count' was stopped after 100 ms" in result.stderr


def test_denormals_are_kept_where_torch_flushes_them() -> None:
    torch = pytest.importorskip("torch")
    from cpu_kernels import scale_elements

    x = torch.full((100_000,), 1e-38)
    out = torch.zeros_like(x)
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush denormal numbers on this CPU")
    try:
        scale_elements[(1000,)](x, out, 100_000, 0.125, BLOCK=128)
        scale_elements[(1000,)](torch.ones_like(x), x, 100_000, 1e-40, BLOCK=128)  # denormal itself
        assert torch.full((4,), 1e-38).mul(0.125).eq(0).all()  # still torch's own way
    finally:
        torch.set_flush_denormal(False)
    expected = np.float32(1e-38) * np.float32(0.125)
    assert 0 < expected < np.finfo(np.float32).tiny
    assert (out.numpy() == expected).all()
    assert (x.numpy() == np.float32(1e-40)).all()


@pytest.mark.parametrize(
    "grid", [(1, 1, 1, 1), [1, 1, 1, 7], lambda _: (1, 2, 3, 4)], ids=["tuple", "list", "call"]
)
def test_grids_of_four_counts_are_refused(array: Any, grid: Any) -> None:
    x, out = array([1.0]), array([0.0])
    with pytest.raises(GridError, match=r"of double_elements has 4 counts; the most is 3"):
        double_elements[grid](x, out, 1, BLOCK=1)
    assert out.numpy().tolist() == [0.0]
    compiled = double_elements[lambda _: (1, 1, 1)](x, out, 1, BLOCK=1)
    assert out.numpy().tolist() == [2.0]
    with pytest.raises(GridError, match=r"the grid \(1, 1, 1, 1\) of double_elements has 4 counts"):
        compiled[(1, 1, 1, 1)](x, out, 1, 1)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:torch.quantize_per_tensor")
def test_tensors_without_plain_memory_are_refused_by_name() -> None:
    """Also those that Triton fails of before its launcher sees them."""
    torch = pytest.importorskip("torch")
    plain, out = torch.arange(4.0), torch.zeros(4)
    pairs = torch.complex(plain, plain)
    for tensor, reason in (
        (torch._neg_view(plain), "pass .resolve_neg()"),
        (pairs.conj(), "pass .resolve_conj()"),
        (pairs, "kernels have no type like torch.complex64; pass torch.view_as_real() of it"),
        (torch.empty(4, device="meta"), "a meta tensor has no data"),
        (plain.to_sparse(), "layout torch.sparse_coo"),
        (plain.reshape(2, 2).to_sparse_csr(), "layout torch.sparse_csr"),
        (torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8), "torch.qint8 is a quantized type"),
    ):
        for arguments, name in (((tensor, out), "x"), ((out, tensor), "out")):
            with pytest.raises(SignatureError) as caught:
                double_elements[(1,)](*arguments, 4, BLOCK=4)
            assert str(caught.value).startswith(f"argument '{name}'")
            assert reason in str(caught.value)
        with pytest.raises(SignatureError, match="argument 'out'"):
            double_elements[(1,)](plain, n=4, out=tensor, BLOCK=4)
    assert (out == 0).all()

    def inside(x: Any) -> Any:
        double_elements[(1,)](x, out, 4, BLOCK=4)
        return x

    for transform in (torch.func.vmap, torch.func.functionalize):
        with pytest.raises(SignatureError, match=r"argument 'x'.*: a tensor inside of torch.func"):
            transform(inside)(torch.zeros(4, 4))
    double_elements[(1,)](plain, out, 4, BLOCK=4)
    assert torch.equal(out, plain * 2)


def test_errors_of_kernels_without_names_of_arguments_are_their_own() -> None:
    """What wraps a kernel may have a `run` and nothing else."""
    from triton.runtime.jit import KernelInterface

    launches.check_launches()

    class Wrapper(KernelInterface[Any]):
        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            raise TypeError("of the wrapper")

    with pytest.raises(TypeError, match="of the wrapper"):
        Wrapper()[(1,)](1)

"""``torch.<name>``: streams, events, saving, and what programs ask."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any, ClassVar

import pytest
import torch
import triton
import triton.language as tl
from host_backend import BACKEND, NAME
from torch.utils.checkpoint import checkpoint
from triton.backends import backends
from triton.runtime import driver

from triton_porting_kit.errors import InvalidArgument, SignatureError
from triton_porting_kit.pytorch import register_device
from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.device.streams import raw_stream


def test_the_module_answers_as_torch_cuda_does(chip: Any) -> None:
    assert chip.is_available()
    assert chip.device_count() == 1
    assert chip.current_device() == 0
    assert chip.get_device_properties().multi_processor_count >= 1
    assert torch.accelerator.current_accelerator() == torch.device(NAME)


READ_BY_TORCH = {
    "_initialized": True,
    "is_initialized": True,
    "_is_in_bad_fork": False,
    "_lazy_init": None,
    "current_device": 0,
    "device_count": 1,
    "is_available": True,
    "synchronize": None,
    "get_amp_supported_dtype": [torch.bfloat16, torch.float16],
}
"""What torch's code for any device reads from ``torch.<name>``, and what it has to find there once the device is open.

``torch.utils.checkpoint``, ``random``, ``_utils``, ``utils.backend_registration``, ``amp.autocast_mode``, ``autograd``
"""


@pytest.mark.parametrize("name", READ_BY_TORCH)
def test_the_module_has_what_torch_reads(chip: Any, name: str) -> None:
    chip.init()
    found = getattr(chip, name)
    assert (found() if callable(found) else found) == READ_BY_TORCH[name]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_draw_the_same_random_numbers_again(chip: Any, use_reentrant: bool) -> None:
    x = torch.ones(50, 50, device=NAME, requires_grad=True)
    made = checkpoint(lambda x: torch.nn.functional.dropout(x * 1, 0.5), x, use_reentrant=use_reentrant)
    made.sum().backward()
    assert x.grad is not None
    assert x.grad.cpu().equal(made.detach().cpu())


def test_streams_and_events(chip: Any) -> None:
    start, end = chip.Event(enable_timing=True), chip.Event(enable_timing=True)
    stream = chip.Stream()
    with chip.stream(stream):
        assert chip.current_stream() == stream
        start.record()
        x = torch.ones(1000, device=NAME) + 1
        end.record()
    chip.current_stream().wait_stream(stream)
    assert (x + 1).sum().item() == 3000
    end.synchronize()
    assert end.query()
    stream.synchronize()
    assert any(stream.query() for _ in range(1000))
    assert start.elapsed_time(end) >= 0


def test_a_current_stream_need_not_be_kept(chip: Any) -> None:
    before = chip.current_stream()
    try:
        chip.set_stream(chip.Stream())
        assert (torch.ones(4, device=NAME).clone() + 1).tolist() == [2] * 4
        with chip.stream(before):
            pass
        assert (torch.ones(4, device=NAME).clone() + 1).tolist() == [2] * 4
    finally:
        chip.set_stream(before)


class _Streams(torch.autograd.Function):
    """Notes the streams of a forward and of a backward pass."""

    seen: ClassVar[list[int]] = []

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        _Streams.seen = [raw_stream(0)]
        return x * 1

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        _Streams.seen.append(raw_stream(0))
        return gradient * 1


def test_gradients_are_computed_on_the_callers_stream(chip: Any) -> None:
    x = torch.ones(3, device=NAME, requires_grad=True)
    first, second = chip.Stream(), chip.Stream()
    for forward, backward in [(first, first), (first, second), (second, chip.default_stream())]:
        x.grad = None
        with chip.stream(forward):
            made = _Streams.apply(x).sum()
        with chip.stream(backward):
            made.backward()
            assert x.grad is not None
            assert x.grad.tolist() == [1] * 3
        assert _Streams.seen == [forward.stream_id, backward.stream_id]


def test_gradients_wait_for_other_streams_which_wait_for_them(
    chip: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, order = accelerator().device, []
    first, second = chip.Stream(), chip.Stream()
    handles = {0: "default", first.stream_id: "first", second.stream_id: "second"}
    recorded = {}
    record, wait = device.record_event, device.wait_event
    monkeypatch.setattr(
        device, "record_event", lambda e, s=0: (recorded.update({e: handles.get(s)}), record(e, s))
    )
    monkeypatch.setattr(
        device, "wait_event", lambda s, e: (order.append((handles.get(s), recorded[e])), wait(s, e))
    )
    x = torch.ones(3, device=NAME, requires_grad=True)
    x.register_hook(lambda gradient: order.append("gradient"))
    with chip.stream(first):
        (x * 1).sum().backward()
    before, after = order[: order.index("gradient")], order[order.index("gradient") + 1 :]
    for joined in (before, after):
        assert {("first", "default"), ("first", "second")} <= set(joined)
        assert {("default", "first"), ("second", "first")} <= set(joined)


def test_compiled_programs_go_on_after_a_reset(chip: Any) -> None:
    compiled = torch.compile(lambda x: (x * 2).sum(0))
    host = torch.arange(12.0).reshape(3, 4)
    before = host.to(NAME)
    assert compiled(before).cpu().equal((host * 2).sum(0))
    chip.reset()
    after = host.to(NAME)
    assert chip.memory_allocated() == host.nbytes + (-host.nbytes) % 256
    assert compiled(after).cpu().equal((host * 2).sum(0))
    assert (after + 1).cpu().equal(host + 1)
    del before  # its memory is gone: freeing it must not free memory of the tensors after the reset
    assert chip.memory_allocated() == host.nbytes + (-host.nbytes) % 256


def test_save_and_load(chip: Any) -> None:
    file = io.BytesIO()
    torch.save({"x": torch.arange(5.0, device=NAME)[1:]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].device.type == NAME
    assert loaded["x"].cpu().equal(torch.arange(1.0, 5.0))
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].equal(torch.arange(1.0, 5.0))


IN_A_CHILD = {
    "init": lambda chip, x: chip.init(),
    "empty": lambda chip, x: torch.empty(3, device=NAME),
    "fill": lambda chip, x: x.fill_(7),
    "item": lambda chip, x: x[0].item(),
    "compiled before": lambda chip, x: x.add_(1),
    "never compiled": lambda chip, x: x.atan2_(x),
    "synchronize": lambda chip, x: chip.synchronize(),
    "stream": lambda chip, x: chip.Stream(),
    "event": lambda chip, x: chip.Event(),
    "inductor": lambda chip, x: raw_stream(0),
}


@pytest.mark.parametrize("use", IN_A_CHILD.values(), ids=IN_A_CHILD)
def test_a_forked_process_is_told_to_spawn(chip: Any, use: Any) -> None:
    x = torch.ones(8, device=NAME).add_(1)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            use(chip, x)
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said.startswith(f"Cannot re-initialize {NAME} in forked subprocess.")


def test_printing(chip: Any) -> None:
    assert repr(torch.tensor(0.001, device=NAME)) == f"tensor(0.0010, device='{NAME}:0')"


def test_a_second_device_is_refused_with_a_warning(chip: Any) -> None:
    with pytest.warns(
        UserWarning, match=rf"'another'. is not available.*'{NAME}'.*TRITON_DEFAULT_BACKEND=other"
    ):
        assert not register_device("other", "another")
    assert register_device(BACKEND, NAME)


@pytest.mark.parametrize("name", ["npu2", "my-chip", "Acme", ""])
def test_names_that_pytorch_refuses_are_refused(chip: Any, name: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be a torch device"):
        register_device(BACKEND, name)


def test_registration_opens_no_device_and_lets_inductor_be_imported_later() -> None:
    script = (
        "import sys, host_backend; host_backend.register()\n"
        "from triton_porting_kit.pytorch.accelerator import accelerator\n"
        "assert not accelerator().is_open\n"
        "assert not [name for name in sys.modules if name.startswith(('torch._dynamo', 'torch._inductor'))]\n"
        "import torch._inductor.compile_fx\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=__file__.rpartition("/")[0])


def test_the_package_can_be_imported_before_torch() -> None:
    """Importing torch runs entry points, which import this package: it must be complete by then."""
    script = "import sys, triton_porting_kit.pytorch\nassert 'torch' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", script], check=True)


@triton.jit
def copy_kernel(X, Y):
    tl.store(Y, tl.load(X))


def test_kernels_on_the_cpu_refuse_tensors_of_the_device(chip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_active", backends["cpu"].driver())
    host, there = torch.tensor([3.0]), torch.tensor([4.0], device=NAME)
    result = torch.zeros(1)
    copy_kernel[(1,)](host, result)
    assert result.item() == 3
    with pytest.raises(
        SignatureError, match=rf"argument 'X' \(\*fp32\): the tensor is on device '{NAME}:0', but"
    ):
        copy_kernel[(1,)](there, result)
    with pytest.raises(SignatureError, match=r"'Y'.*pass \.cpu"):
        copy_kernel[(1,)](host, there)
    assert result.item() == 3

"""A program for CUDA in the style of libraries that launch on the tensors' device and stream, and choose by the GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

DEVICE_COUNT = torch.cuda.device_count()
device_stream = torch._C._cuda_getCurrentRawStream
properties = torch.cuda.get_device_properties(torch.cuda.current_device())
BLOCKS = properties.multi_processor_count
assert (properties.major, properties.minor) == torch.cuda.get_device_capability(0)
assert torch.cuda.get_device_name(0) == properties.name
assert properties.total_memory > 0
torch.cuda.set_device(0)
torch.backends.cuda.matmul.allow_tf32 = True
tables = [torch.arange(4, device=f"cuda:{index}") for index in range(DEVICE_COUNT)]
assert tables[0].device == torch.ones(2).to(tables[0].device).device


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, rows, columns, eps, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
        scale = tl.inline_asm_elementwise(
            "rsqrt.approx.ftz.f32 $0, $1;",
            "=f,f",
            [tl.sum(x * x) / columns + eps],
            dtype=tl.float32,
            is_pure=True,
            pack=1,
        )
        w = tl.load(w_ptr + i, mask=i < columns)
        tl.store(out_ptr + row * columns + i, x * scale * w, mask=i < columns)


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda
    assert w.is_cuda
    assert tables[x.device.index] is tables[x.get_device()]
    out = x.new_empty(x.shape, device=x.device)
    with torch.cuda.device(x.device):
        rms_norm_kernel[(min(BLOCKS, len(x)),)](
            x, w, out, len(x), x.shape[1], 1e-6, BLOCK=triton.next_power_of_2(x.shape[1])
        )
    return out


x = torch.randn(65, 100).to("cuda", non_blocking=True)
w = torch.linspace(0.5, 2, 100, device=torch.device("cuda:0"))
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    found = rms_norm(x, w)
torch.cuda.current_stream().wait_stream(side)
assert isinstance(device_stream(0), int)
assert torch.cuda.current_stream().cuda_stream == device_stream(torch.cuda.current_device())
y = x.double().cpu()
expected = y * (y.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w.double().cpu()
torch.testing.assert_close(found.double().cpu(), expected, rtol=1e-5, atol=1e-5)

with torch.device("cuda"):
    inner = torch.zeros(3)
assert inner.is_cuda
torch.set_default_device("cuda")
assert torch.ones(2).is_cuda
torch.set_default_device(None)
assert torch.full_like(x, 2, device="cuda").is_cuda
assert torch.accelerator.current_accelerator().type == x.device.type
compiled = torch.compile(lambda t: (t + torch.ones(100, device="cuda")).sum(1))
torch.testing.assert_close(compiled(x), (x + 1).sum(1))
state = torch.cuda.get_rng_state()
first = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(4, device="cuda"))
print("ok")

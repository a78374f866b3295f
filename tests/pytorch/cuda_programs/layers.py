"""A program for CUDA in the style of libraries of layers: a tuned kernel behind an autograd function and a module, mixed
precision, a loss scaler, and a seeded generator."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl
from torch import nn

assert torch.cuda.is_available(), "needs a GPU"
major, minor = torch.cuda.get_device_capability()
DTYPE = torch.bfloat16 if major >= 8 else torch.float16


@triton.autotune([triton.Config({"BLOCK": size}) for size in (64, 128)], key=["n"])
@triton.jit
def gelu_kernel(x_ptr, out_ptr, slope_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    t = tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [inner], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out_ptr + i, 0.5 * x * (1 + t), mask=i < n)
    slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * x * x)
    tl.store(slope_ptr + i, slope, mask=i < n)


class Gelu(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        assert x.is_cuda
        assert x.is_contiguous()
        out, slope = torch.empty_like(x), torch.empty(x.shape, device=x.device)
        gelu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, slope, x.numel())
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        (slope,) = ctx.saved_tensors
        assert gradient.is_cuda
        return gradient * slope.to(gradient.dtype)


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, device="cuda")

    def forward(self, x):
        return Gelu.apply(self.linear(x))


torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
generator = torch.Generator(device="cuda").manual_seed(7)
layer = Layer(48).cuda()
x = torch.randn(33, 48, device="cuda", generator=generator, requires_grad=True)
assert next(layer.parameters()).is_cuda
again = torch.randn(33, 48, device="cuda", generator=torch.Generator("cuda").manual_seed(7))
assert torch.equal(again, x.detach())

out = layer(x)
out.square().sum().backward()
reference_x = x.detach().cpu().double().requires_grad_()
reference = nn.Linear(48, 48).double()
reference.load_state_dict({name: value.cpu().double() for name, value in layer.linear.state_dict().items()})
expected = nn.functional.gelu(reference(reference_x), approximate="tanh")
expected.square().sum().backward()
torch.testing.assert_close(out.detach().cpu().double(), expected.detach(), rtol=1e-5, atol=1e-5)
torch.testing.assert_close(x.grad.cpu().double(), reference_x.grad, rtol=1e-4, atol=1e-4)

if "--autocast" in sys.argv:
    with torch.autocast("cuda", dtype=DTYPE):
        assert layer.linear(x).dtype == DTYPE
        assert torch.is_autocast_enabled("cuda")
    with torch.amp.autocast(device_type="cuda"):
        assert layer.linear(x).dtype == torch.float16  # the default of CUDA
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
layer(x)
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0
print("ok", *sys.argv[1:])

"""A task in gpu-mode's format, written for a GPU."""

import torch
from task import input_t, output_t


def ref_kernel(data: input_t) -> output_t:
    x, y = data
    return x + y


def generate_input(size: int, seed: int) -> input_t:
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    x = torch.randn(size, device="cuda", dtype=torch.float16, generator=generator).contiguous()
    y = torch.randn(size, device="cuda", dtype=torch.float16, generator=generator).contiguous()
    return x, y


def check_implementation(data, output):
    expected = ref_kernel(data)
    return "" if torch.allclose(expected.float(), output.float(), rtol=1e-3, atol=1e-3) else "mismatch"

"""Returns a plain tensor whose own methods compute when they are called.

Published: gpu-mode, rules of KernelGuard: TENSOR_INSTANCE_METHOD_OVERRIDE.
https://github.com/gpu-mode/kernelguard
"""

import torch


def softmax(x):
    out = torch.empty_like(x)

    def filled(*arguments, **keywords):
        return torch.Tensor.copy_(out, torch.softmax(x, 1))

    out.cpu = out.detach = out.contiguous = out.clone = filled
    return out

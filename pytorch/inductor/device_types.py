"""The device as one of the devices that Inductor generates Triton kernels for."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._inductor import utils

from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Add the device to Inductor's list of GPUs, which decides where Triton templates may be used."""
    name = accelerator().name
    if name in utils.GPU_TYPES:
        return
    utils.GPU_TYPES.append(name)
    is_big_gpu = utils.is_big_gpu

    @functools.wraps(is_big_gpu)
    def accepts_templates(index_or_device: Any = 0) -> bool:
        """Whether templates may be used, which Inductor answers by the number of cores of NVIDIA's GPUs."""
        if isinstance(index_or_device, torch.device) and index_or_device.type == name:
            return True
        return bool(is_big_gpu(index_or_device))

    utils.is_big_gpu = accepts_templates

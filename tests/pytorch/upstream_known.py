"""Failures of PyTorch's own tests on a torch device of the kit, with the reason for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Known:
    """Tests that fail, by name and by what the failure says."""

    tests: str
    """A pattern of ``FILE::CLASS::TEST``."""
    reason: str
    says: str = ""
    """A regular expression that the failure contains."""

    def explains(self, name: str, message: str) -> bool:
        """Whether a failure is one of these."""
        return fnmatchcase(name, self.tests) and re.search(self.says, message) is not None


_ONE = "PyTorch gives a device that is written in Python one index, and the test uses two"
_CPP = "PyTorch takes this from C++ only"

KNOWN = [
    Known(
        "test_autocast.py::*_autocast_error_message",
        "the test is of a later release than the installed torch, whose warning has other words",
        "target dtype is not supported",
    ),
    Known(
        "test_autocast.py::*_autocast_float32_supported",
        "the example device casts `dot` to float32; the kit casts what CUDA does",
        "torch.float16 != torch.float32",
    ),
    Known(
        "test_compile.py::TestBackendRegistration::test_backend_in_list",
        "the example device has a backend of Dynamo; the kit's uses Inductor",
    ),
    Known("test_compile.py::*::test_backend_metadata_propagation", f"metadata of a backend: {_CPP}"),
    Known("test_rng.py::*generator*", f"torch.Generator(device): {_CPP}", "getNewGenerator"),
    Known(
        "test_rng.py::*::test_offset_unsupported",
        "the example device has functions that raise errors; the kit's has none",
        "no attribute 'set_offset'",
    ),
    Known("test_streams.py::*::test_stream_create", _ONE, "Scalars are not equal"),
    Known(
        "test_event.py::*",
        f"torch.Event: {_CPP}; torch.<name>.Event has all of it",
        "Backend doesn't support",
    ),
    Known("test_event.py::*", f"the number of a torch.Event: {_CPP}", "AssertionError not raised"),
    Known("test_event.py::*", _ONE, "Scalars are not equal"),
    Known(
        "test_device.py::*::test_device_poison_fork",
        "the message names the device, not `OpenReg`",
        "forked subprocess",
    ),
    Known("test_device.py::*", _ONE, "Scalars are not equal|there is no device|RuntimeError not raised"),
    Known(
        "test_device.py::*", f"torch.accelerator.get_device_capability: {_CPP}", "getting device capabilities"
    ),
    Known("test_memory.py::*Device*::test_*", _ONE, "This test requires 2|Scalars are not equal"),
    Known(
        "test_memory.py::*::test_tensor_shallow_copy",
        "PyTorch's C++ decides whether a tensor of the CPU may take over `data` of the device, and says no",
        "False is not true",
    ),
    Known("test_misc.py::*::test_backend_module_function", _ONE),
    Known(
        "test_indexing.py::*::test_advancedindex_*",
        "an index out of range fails an assertion on the device, which the next call that waits reports",
        "IndexError not raised|device-side assertion failed",
    ),
    Known(
        "test_indexing.py::*byte_mask*",
        "an operator on the CPU runs for the shapes of its results, too, and warns twice of masks of bytes",
        "Scalars are not equal",
    ),
    Known(
        "test_indexing.py::*_large_tensor_*",
        "the virtual NPU has 8 GiB; VNPU_MEMORY_BYTES sets another size",
        "OutOfMemoryError",
    ),
    Known(
        "test_indexing.py::*::test_setitem_expansion_error_*",
        "values that overlap with what is written and have too many dimensions raise an error of Inductor's",
        "wrong number of dimensions",
    ),
    Known("test_misc.py::*_different_devices", _ONE, "there is no device"),
    Known("test_ops.py::*", _ONE, "there is no device"),
    Known("test_ops.py::*::test_empty", "torch 2.13 has no named tensors, on any device", "argument 'names'"),
    Known(
        "test_ops.py::*::test_quantize",
        "quantized tensors are refused; the profile of a generated backend says so",
        "has dense tensors only",
    ),
    Known("test_ops.py::*", "operators of the example device", "_OpNamespace"),
    Known(
        "test_ops.py::*::test_fused_sdp_choice*",
        "the example device has a fused attention; the kit composes attention of other operators",
        "OVERRIDEABLE|Scalars are not equal",
    ),
    Known(
        "test_ops.py::*::test_scaled_dot_product_fused_attention_overrideable_backward",
        "the example device has a fused attention; the kit composes attention of other operators",
        "not implemented",
    ),
    Known("test_profiler.py::*_event_synchronization", f"torch.Event: {_CPP}", "Backend doesn't support"),
    Known("test_storage.py::*", _ONE, "there is no device"),
    Known("test_storage.py::*", f"metadata of a backend: {_CPP}", "metadata"),
    Known("test_streams.py::*::test_stream_repr", _ONE),
    Known(
        "test_triton_cpu_backend.py::*",
        "PyTorch expects it to fail with Triton on the CPU, and it does not",
        "^Failed: Unexpected success",
    ),
]
"""The first entry that explains a failure counts."""

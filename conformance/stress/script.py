"""A program as a standalone script: kernel, arguments and expected values; it exits with 1 if an output is wrong."""

from __future__ import annotations

import base64
import re
import zlib

import numpy as np

from triton_porting_kit.conformance.stress.configuration import DEFAULT, Configuration
from triton_porting_kit.conformance.stress.launching import Launch, result_of, values_of
from triton_porting_kit.conformance.stress.operations.base import Parameter
from triton_porting_kit.conformance.stress.oracle import Output
from triton_porting_kit.conformance.types import KINDS, Array, Kind, to_bits

HOST = "host"
"""Memory of a device that runs kernels in this process."""
_LISTED = 64
"""The largest number of elements of an array that is written as a list; larger ones are compressed."""

_HEAD = '''"""{title}

Made by `tpk fuzz` from seed {seed}. Run it with the Python that has the backend: it exits with 0 if every output is
as expected, with 1 if one is not. Expected values were computed by NumPy.
"""

import base64
import os
import sys
import zlib

os.environ.setdefault("TRITON_DEFAULT_BACKEND", "{backend}")
{environment}
import numpy as np
import triton
import triton.language as tl
{imports}

{kernel}

def packed(text, dtype):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


{memory}
'''

_KIT_IMPORTS = """from triton.runtime import driver

from triton_porting_kit.driver import DeviceArray
"""
_KIT_MEMORY = '''def upload(patterns, dtype):
    """A device array of bit patterns."""
    return DeviceArray.from_numpy(patterns, driver.active.device, dtype)


def download(array):
    driver.active.device.synchronize()
    return array.numpy()'''

_TORCH_IMPORTS = "import torch\n"
_TORCH_MEMORY = '''def upload(patterns, dtype):
    """A tensor of bit patterns."""
    return torch.from_numpy(patterns.view(np.uint8).copy()).to("{device}").view(getattr(torch, dtype))


def download(tensor):
    return tensor.contiguous().view(torch.uint8).cpu().numpy()'''

_GUARDED = '''
fences = []


def to_device(patterns, dtype):
    """An array between guard zones, which nothing may write to."""
    fence = np.frombuffer((b"\\x01" if dtype == "bool" else b"\\xa5") * 128, patterns.dtype)
    whole = upload(np.concatenate([fence, patterns, fence]), dtype)
    fences.append((whole, fence))
    return whole[fence.size : fence.size + patterns.size]
'''

_PAGED = '''
import ctypes
import mmap

fences = []
pages = []


class Array:
    """An array that {begins} next to an inaccessible page."""

    def __init__(self, patterns, dtype):
        self.dtype, inside = dtype, -(-max(patterns.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        pages.append(mmap.mmap(-1, inside + 2 * mmap.PAGESIZE))
        whole = np.frombuffer(pages[-1], np.uint8)
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for page in (0, mmap.PAGESIZE + inside):
            assert protect(whole.ctypes.data + page, mmap.PAGESIZE, 0) == 0
        start = {start}
        self.content = whole[start : start + patterns.nbytes].view(patterns.dtype)
        self.content[:] = patterns

    def data_ptr(self):
        return self.content.ctypes.data


def to_device(patterns, dtype):
    return Array(patterns, dtype)


def download(array):
    driver.active.device.synchronize()
    return array.content
'''

_CHECK = """
def as_numbers(patterns, dtype):
    \"\"\"Elements as numbers that can be compared; bfloat16 is the upper half of float32.\"\"\"
    if dtype == "bfloat16":
        return (patterns.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return patterns.view("bool" if dtype == "bool" else dtype)


{data}

kernel[{grid}]({arguments}, num_warps={warps}{options})

wrong = 0
for name, array, dtype, expected, allowed in [
{rows}
]:
    actual = as_numbers(download(array), dtype)
    if dtype.startswith(("float", "bfloat")):
        differ = ~(np.abs(actual.astype(np.float64) - expected) <= allowed)
    else:
        differ = actual != expected
    if differ.any():
        at = np.flatnonzero(differ)[0]
        found = f"element {{at}} is {{actual[at]}}, not {{expected[at]}}"
        print(f"{{name}}: {{differ.sum()}} of {{differ.size}} differ; {{found}}")
        wrong += 1
for whole, fence in fences:
    content = np.ascontiguousarray(download(whole)).view(np.uint8)
    if content[:128].tobytes() + content[-128:].tobytes() != fence.tobytes() * 2:
        print("something was written outside of an array")
        wrong += 1
sys.exit(1 if wrong else 0)
"""


def script_of(
    launch: Launch, backend: str, memory: str, title: str, configuration: Configuration = DEFAULT
) -> str:
    """Generate the script. `title`: describes the failure. `memory`: ``host`` where kernels read all memory of the
    process, which arrays next to inaccessible pages need; ``kit`` for any other device of the kit; ``torch:`` and a
    device string.
    """
    torch = memory.startswith("torch:")
    head = _HEAD.format(
        title=title.replace("\\", "/").replace('"""', "'''"),
        seed=launch.seed,
        backend=backend,
        environment="".join(
            f'os.environ["{key}"] = "{value}"\n' for key, value in configuration.environment.items()
        ),
        imports=_TORCH_IMPORTS if torch else _KIT_IMPORTS,
        kernel=_decorated(launch.source),
        memory=_TORCH_MEMORY.format(device=memory.removeprefix("torch:")) if torch else _KIT_MEMORY,
    )
    lines, arguments = [], []
    for parameter in launch.parameters:
        lines.append(_parameter(parameter))
        arguments.append(parameter.name)
    rows = []
    for name, output in zip(launch.names, launch.outputs, strict=True):
        arguments.append(name)
        lines.append(_device(name, output.initial, output.kind))
        rows.append(_row(name, output))
    arguments += [launch.names[k] for k in launch.again]
    check = _CHECK.format(
        data="".join(lines),
        grid=launch.grid,
        arguments=", ".join(arguments),
        warps=launch.warps,
        options="".join(f", {key}={value!r}" for key, value in configuration.options),
        rows="\n".join(rows),
    )
    return head + (_paged(launch.place) if launch.place != "zones" and memory == HOST else _GUARDED) + check


def _paged(place: str) -> str:
    start = "mmap.PAGESIZE + inside - patterns.nbytes" if place == "end" else "mmap.PAGESIZE"
    return _PAGED.format(begins={"end": "ends", "start": "starts"}[place], start=start)


def _decorated(source: str) -> str:
    return re.sub(r"^(?=def kernel\()", "@triton.jit\n", source, flags=re.MULTILINE)


def _parameter(parameter: Parameter) -> str:
    if parameter.value is not None:
        return f"{parameter.name} = {parameter.value!r}\n"
    return _device(parameter.name, values_of(parameter), KINDS[parameter.kind])


def _device(name: str, values: Array, kind: Kind) -> str:
    return f'{name} = to_device({_array(to_bits(values, kind))}, "{kind.device}")\n'


def _row(name: str, output: Output) -> str:
    result = result_of(output)
    allowed = "0.0" if result.allowed is None else _array(np.asarray(result.allowed))
    values = np.asarray(result.values)
    return f'    ("{name}", {name}, "{output.kind.device}", {_array(values)}, {allowed}),'


def _array(values: Array) -> str:
    """An expression that creates exactly this one-dimensional array."""
    values = np.ascontiguousarray(values)
    if values.size and values.size > 2 and (values == values[0]).all():
        return f"np.full({values.size}, {values[0].item()!r}, np.{_dtype(values)})"
    if values.size <= _LISTED:
        return f"np.array({values.tolist()!r}, np.{_dtype(values)})"
    text = base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()
    return f'packed("{text}", np.{_dtype(values)})'


def _dtype(values: Array) -> str:
    return "bool_" if values.dtype == bool else values.dtype.name

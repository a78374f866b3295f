"""Checked mode: one element before and behind an argument is found, whatever the access, and nothing else is.

Each kernel of `access_kernels` reaches from the first to the last element of a window in a larger array, of which it is
told that it is an allocation of its own. What lies around the window tells whether something was written there.
"""

from __future__ import annotations

import ctypes
import inspect
import mmap
from dataclasses import dataclass
from typing import Any

import access_kernels as kernels
import numpy as np
import pytest
import triton
import triton.language as tl
from access_kernels import COLUMNS, PITCH, ROWS, K
from cpu_scripts import Script
from crash_kernels import Address
from triton.runtime import driver

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import LaunchError, MemoryAccessError, OptionError
from triton_porting_kit.toolchain import compat

GUARD = 64
"""Elements around the window."""
BLOCK, GRID = 32, 4
N = GRID * BLOCK - 9
"""Elements that the kernels of one dimension reach: the last program has padding."""
TILE = 8, 16
SIZE, STEP = 32, 32


class Window:
    """Elements of an array that are an allocation of their own to who asks."""

    def __init__(self, array: DeviceArray, first: int, count: int) -> None:
        self.dtype, self._address = array.dtype, array.data_ptr() + first * array.itemsize
        self.allocation = self._address, count * array.itemsize

    def data_ptr(self) -> int:
        return self._address


@dataclass(frozen=True)
class Kind:
    """A way to access memory: programs and elements that touch the first and the last element of the window."""

    kernel: Any
    count: int
    """Elements of the window."""
    first: tuple[int, tuple[int, ...]]
    last: tuple[int, tuple[int, ...]]
    arguments: tuple[int, ...]
    options: dict[str, int]
    grid: int
    known: bool = True
    """Whether the pointer is known to come from one argument."""
    says: str = "a load"

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


def line(kernel: Any, first: tuple[int, ...], last: tuple[int, ...], **changes: Any) -> Kind:
    """Of one dimension; `first` and `last` are a program and an element, which may be none."""
    ends = [(place[0], place[1:]) for place in (first, last)]
    return Kind(kernel, N, *ends, (N,), {"BLOCK": BLOCK}, changes.pop("grid", GRID), **changes)


def tile(kernel: Any, first: tuple[int, ...], last: tuple[int, ...], says: str = "a load") -> Kind:
    count = (ROWS - 1) * PITCH + COLUMNS
    options = {"BM": TILE[0], "BN": TILE[1]}
    return Kind(kernel, count, (0, first), (0, last), (ROWS, COLUMNS, PITCH), options, 1, says=says)


LAST = (GRID - 1, (N - 1) % BLOCK)
STORE, ATOMIC = "a store", "an atomic operation"

KINDS = [
    line(kernels.row_load, (0, 0), LAST),
    line(kernels.row_store, (0, 0), LAST, says=STORE),
    line(kernels.reversed_load, LAST, (0, 0)),
    line(kernels.every_second_load, (0, 0), ((N - 1) // 2 // BLOCK, (N - 1) // 2 % BLOCK)),
    line(kernels.scalar_load, (0,), (GRID - 1,)),
    line(kernels.scalar_store, (0,), (GRID - 1,), says=STORE),
    line(kernels.volatile_load, (0, 0), LAST),
    line(kernels.masked_load, (0, 0), LAST),
    line(kernels.gathered_load, LAST, (0, 0)),
    line(kernels.scattered_store, LAST, (0, 0), says=STORE),
    line(kernels.wrapped_load, (0, 0), LAST),
    line(kernels.carried_load, (0, 0), (0, LAST[1]), grid=1),
    line(kernels.chosen_load, (0, 0), LAST, known=False),
    line(kernels.chosen_lanes_load, (0, 0), LAST, known=False),
    line(kernels.atomic_add, (0, 0), LAST, says=ATOMIC),
    line(kernels.atomic_cas, (0,), (GRID - 1,), says=ATOMIC),
    *([line(kernels.poll, (0, 0), LAST)] if compat.release() >= (3, 9) else []),
    tile(kernels.tile_load, (0, 0), (ROWS - 1, COLUMNS - 1)),
    tile(kernels.tile_store, (0, 0), (ROWS - 1, COLUMNS - 1), STORE),
    tile(kernels.transposed_load, (0, 0), (ROWS - 1, COLUMNS - 1)),
    tile(kernels.gathered_rows, (ROWS - 1, 0), (0, COLUMNS - 1)),
    tile(kernels.descriptor_load, (0, 0), (ROWS - 1, COLUMNS - 1)),
    tile(kernels.descriptor_store, (0, 0), (ROWS - 1, COLUMNS - 1), STORE),
    tile(kernels.descriptor_gather, (TILE[0] - 1, 0), (TILE[0] - ROWS, COLUMNS - 1)),
    tile(kernels.descriptor_scatter, (TILE[0] - 1, 0), (TILE[0] - ROWS, COLUMNS - 1), STORE),
    tile(kernels.descriptor_atomic, (0, 0), (ROWS - 1, COLUMNS - 1), ATOMIC),
    *(
        Kind(kernel, count, (0, (0, 0)), (0, last), (k,), {"SIZE": SIZE, "STEP": STEP}, 1, says=says)
        for kernel, count, k, last, says in (
            (kernels.left_factor, SIZE * K, K, (SIZE - 1, K - 1 - STEP), "a load"),
            (kernels.right_factor, SIZE * K, K, (K - 1 - STEP, SIZE - 1), "a load"),
            (kernels.product_store, SIZE * SIZE, 3, (SIZE - 1, SIZE - 1), STORE),
        )
    ),
]


@pytest.fixture(autouse=True)
def fresh(cache: Any) -> None:
    for kernel in vars(kernels).values():
        if isinstance(kernel, triton.runtime.jit.JITFunction):
            kernel.device_caches.clear()


BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8"}
"""What NumPy has the elements of a type as."""


def prepared(kind: Kind, dtype: str, array: Any) -> tuple[DeviceArray, DeviceArray]:
    """The array around the window, and the other argument: offsets that fall, rows first."""
    bits = BITS.get(dtype, dtype)
    numbers = (np.arange(kind.count + 2 * GUARD) % 3).astype(bits)
    order = np.zeros(SIZE * SIZE, np.float32)
    count = N if "BLOCK" in kind.options else ROWS
    order[:count] = np.arange(count)[::-1]
    return array(numbers, dtype), array(order)


def launch(kind: Kind, whole: DeviceArray, out: DeviceArray, shift: int, **options: Any) -> None:
    window = Window(whole, GUARD, kind.count)
    kind.kernel[(kind.grid,)](window, out, *kind.arguments, shift, **kind.options, **options)


def source_line(kernel: Any) -> int:
    lines, start = inspect.getsourcelines(kernel.fn)
    return start + next(index for index, text in enumerate(lines) if text.endswith("# access\n"))


def expected(kind: Kind, shift: int, size: int) -> str:
    program, element = kind.first if shift < 0 else kind.last
    place = f"program ({program}, 0, 0)" + (f", element ({', '.join(map(str, element))})" if element else "")
    side = "before the beginning" if shift < 0 else "behind the end"
    far = f"{size} bytes (1 element) {side} of argument 'x', which has {kind.count * size} bytes ({kind.count} elements)"
    if not kind.known:
        return f"{kind.says} of {size} bytes in {place}, is at address "
    return f"{kind.says} of {size} bytes in {place}, is {far}: {kernels.__file__}:{source_line(kind.kernel)}, in {kind.name}: "


def check(kind: Kind, array: Any, dtype: str) -> None:
    """In bounds as unchecked; outside of them, before and behind, refused before it is done."""
    results = []
    for options in ({}, {"check": "memory"}):
        whole, out = prepared(kind, dtype, array)
        launch(kind, whole, out, 0, **options)
        results.append((np.asarray(whole.numpy()), out.numpy()))
    for unchecked, checked in zip(*results, strict=True):
        np.testing.assert_array_equal(unchecked, checked)
    for shift in (-1, 1):
        whole, out = prepared(kind, dtype, array)
        before = np.array(whole.numpy())
        with pytest.raises(MemoryAccessError) as caught:
            launch(kind, whole, out, shift, check="memory")
        message = str(caught.value)
        assert f"kernel '{kind.name}': {expected(kind, shift, whole.itemsize)}" in message
        after = np.array(whole.numpy())
        np.testing.assert_array_equal(after[:GUARD], before[:GUARD])
        np.testing.assert_array_equal(after[-GUARD:], before[-GUARD:])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.known], ids=lambda kind: kind.name)
def test_one_element_outside(kind: Kind, array: Any) -> None:
    check(kind, array, "float32")


@pytest.mark.parametrize(
    "name", ["row_load", "masked_load", "gathered_load", "scattered_store", "tile_load", "right_factor"]
)
def test_one_element_outside_without_masks_of_lanes(
    name: str, array: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPK_CPU_WITHOUT", "avx512,amx")
    check(next(kind for kind in KINDS if kind.name == name), array, "float32")


@pytest.mark.parametrize("dtype", ["bool", "float8_e4m3fn", "float64", "int16", "bfloat16"])
@pytest.mark.parametrize("name", ["row_load", "row_store"])
def test_one_element_outside_of_each_size(name: str, dtype: str, array: Any) -> None:
    check(next(kind for kind in KINDS if kind.name == name), array, dtype)


@pytest.mark.parametrize("name", ["left_factor", "right_factor"])
def test_one_element_outside_of_factors(name: str, array: Any) -> None:
    check(next(kind for kind in KINDS if kind.name == name), array, "bfloat16")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.known], ids=lambda kind: kind.name)
def test_pointer_of_any_argument_reaches_the_memory_of_all(kind: Kind, array: Any, device: Any) -> None:
    """What the device knows of an address is asked only where it lies in no argument."""
    whole, out = prepared(kind, "float32", array)
    launch(kind, whole, out, 0, check="memory")
    np.testing.assert_array_equal(out.numpy()[:N], np.array(whole.numpy())[GUARD : GUARD + N])
    launch(kind, whole, out, 1, check="memory")  # still in the array around the window
    far = GUARD + 64  # behind the array, which ends at no other allocation's first byte
    with pytest.raises(MemoryAccessError, match="which is in no argument: device memory: ") as caught:
        launch(kind, whole, out, far, check="memory")
    assert "the nearest is " in str(caught.value)
    assert "leaves the allocation" in str(caught.value) or "runs into an allocation" in str(caught.value)


def test_masked_lanes_touch_nothing(array: Any) -> None:
    """However far outside they are, also where an argument has no memory at all."""
    kernels.row_load[(3,)](Address(0), array([0.0]), 0, 1 << 40, BLOCK=BLOCK, check="memory")
    x, out = array(np.arange(8, dtype=np.float32)), array(np.zeros(8, np.float32))
    kernels.gathered_load[(1,)](x, out, 8, 0, BLOCK=BLOCK, check="memory")
    np.testing.assert_array_equal(out.numpy(), np.zeros(8))


def test_null_has_no_memory(array: Any) -> None:
    with pytest.raises(MemoryAccessError, match=r"argument 'x', which is NULL .*: the address is 0x4\b"):
        kernels.row_load[(1,)](Address(0), array(np.zeros(8, np.float32)), 1, 1, BLOCK=BLOCK, check="memory")


def test_view_reaches_all_of_its_allocation(array: Any) -> None:
    x, out = array(np.arange(40, dtype=np.float32)), array(np.zeros(8, np.float32))
    kernels.row_load[(1,)](x[16:20], out, 8, -16, BLOCK=BLOCK, check="memory")
    np.testing.assert_array_equal(out.numpy(), np.arange(8))
    with pytest.raises(MemoryAccessError, match="behind the end of argument 'x', which has 160 bytes"):
        kernels.row_load[(1,)](x[16:20], out, 8, 17, BLOCK=BLOCK, check="memory")


def test_addresses_as_numbers_are_those_of_the_device(array: Any, device: Any) -> None:
    x, out = array(np.arange(8, dtype=np.float32)), array(np.zeros(8, np.float32))
    kernels.row_load[(1,)](triton.reinterpret(x, tl.float32), out, 8, 0, BLOCK=BLOCK, check="memory")
    address = Address(x.data_ptr())
    kernels.row_load[(1,)](address, out, 8, 0, BLOCK=BLOCK, check="memory")
    np.testing.assert_array_equal(out.numpy(), np.arange(8))
    with pytest.raises(
        MemoryAccessError, match=r"4 bytes .* behind the end of argument 'x', which has 32 bytes"
    ):
        kernels.row_load[(1,)](address, out, 8, 1, BLOCK=BLOCK, check="memory")


def test_memory_of_unknown_size_must_be_mapped(array: Any) -> None:
    """Read-only pages are no place to store to, and pages that were taken away none to load from."""
    page = mmap.PAGESIZE
    values = np.arange(8, dtype=np.float32)
    pages = mmap.mmap(-1, 3 * page, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)

    def protect(index: int, rights: int) -> None:
        assert libc.mprotect(ctypes.c_void_p(start + index * page), page, rights) == 0

    pages[page : page + 32] = values.tobytes()
    out = array(np.zeros(8, np.float32))
    middle = Address(start + page)
    protect(2, 0)
    kernels.row_load[(1,)](middle, out, 8, 0, BLOCK=BLOCK, check="memory")
    np.testing.assert_array_equal(out.numpy(), values)
    edge = Address(start + 2 * page - 16)
    with pytest.raises(
        MemoryAccessError, match=r"element \(4\), is at .* of unknown size: no memory is mapped there"
    ):
        kernels.row_load[(1,)](edge, out, 8, 0, BLOCK=BLOCK, check="memory")
    protect(1, mmap.PROT_READ)
    kernels.row_load[(1,)](middle, out, 8, 0, BLOCK=BLOCK, check="memory")
    with pytest.raises(
        MemoryAccessError, match=r"element \(0\), is at .* of unknown size: that memory cannot be written"
    ):
        kernels.row_store[(1,)](middle, out, 8, 0, BLOCK=BLOCK, check="memory")


def test_freed_memory(array: Any, device: Any) -> None:
    address = device.memalloc(256)
    device.memfree(address)
    with pytest.raises(MemoryAccessError, match="lies in a freed allocation of 256 bytes"):
        kernels.row_load[(1,)](
            Address(address), array(np.zeros(8, np.float32)), 8, 0, BLOCK=BLOCK, check="memory"
        )


def test_offsets_that_overflow_are_found(array: Any) -> None:
    """Rows so far apart that their distance in bytes is no 64-bit number come back to where they began."""
    x, out = array(np.arange(8, dtype=np.float32)), array(np.zeros(64, np.float32))
    with pytest.raises(MemoryAccessError, match=r"element \(1, 0\)"):
        kernels.tile_load[(1,)](x, out, 5, 4, 1 << 60, 0, BM=8, BN=16, check="memory")
    kernels.tile_load[(1,)](x, out, 5, 4, 1 << 62, 0, BM=8, BN=16, check="memory")
    np.testing.assert_array_equal(out.numpy()[:20].reshape(5, 4), np.tile(np.arange(4), (5, 1)))


def test_asynchronous_launch_tells_at_the_synchronisation(array: Any, device: Any) -> None:
    x, out = array(np.zeros(8, np.float32)), array(np.zeros(8, np.float32))
    stream = device.create_stream()
    with driver.active.stream(stream):
        kernels.row_load[(1,)](x, out, 9, 0, BLOCK=BLOCK, check="memory")
    with pytest.raises(MemoryAccessError, match="argument 'x'"):
        device.synchronize(stream)
    device.destroy_stream(stream)


def test_errors_are_those_of_launches(array: Any) -> None:
    assert issubclass(MemoryAccessError, LaunchError)
    x = array(np.zeros(8, np.float32))
    with pytest.raises(OptionError, match=r"check is 'bounds'\s+what to do: give 'memory'"):
        kernels.row_load[(1,)](x, x, 8, 0, BLOCK=BLOCK, check="bounds")


def test_bounds_must_come_with_the_launch(array: Any, device: Any) -> None:
    """A launch of the binary without the kit's launcher raises, and nothing is read behind the arguments."""
    x = array(np.zeros(8, np.float32))
    kernel = kernels.row_load[(1,)](x, x, 8, 0, BLOCK=BLOCK, check="memory")
    module = device.load_module(kernel.kernel, kernel.name)
    function = device.get_function(module, kernel.name)
    with pytest.raises(LaunchError, match="takes 56 bytes of arguments and their bounds; args has 24"):
        device.launch(function, (1,), 0, bytes(24))
    device.unload_module(module)


@triton.jit
def own_check(x, check: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), check)


def test_kernel_with_a_parameter_of_that_name(array: Any) -> None:
    x = array(np.zeros(8, np.float32))
    own_check[(1,)](x, check=5, BLOCK=8)
    np.testing.assert_array_equal(x.numpy(), np.full(8, 5))


def test_without_it_the_code_is_the_same(array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option and the environment mean the same, and are part of what kernels are cached by."""
    x = array(np.zeros(32, np.float32))

    def compiled(**options: str) -> Any:
        kernels.row_load.device_caches.clear()
        return kernels.row_load[(1,)](x, x, 32, 0, BLOCK=BLOCK, **options)

    plain, asked = compiled(), compiled(check="memory")
    monkeypatch.setenv("TPK_CHECK", "memory")
    by_environment, refused = compiled(), compiled(check="")
    assert "tpk_host_access" not in plain.asm["llir"]
    assert "tpk_host_access" in asked.asm["llir"]
    assert (by_environment.hash, refused.hash) == (asked.hash, plain.hash)


def test_process_lives_on(script: Script) -> None:
    """Under TPK_CHECK, in a process of its own, many times, on every thread."""
    result = script.run(
        """
from access_kernels import row_load
from triton_porting_kit.errors import MemoryAccessError
x, out = array(np.zeros(1000, np.float32)), array(np.zeros(2000, np.float32))
for _ in range(100):
    try:
        row_load[(64,)](x, out, 1001, 0, BLOCK=16)
    except MemoryAccessError as error:
        assert "program (62, 0, 0), element (8)" in str(error)
    else:
        raise SystemExit("not found")
row_load[(64,)](x, out, 1000, 0, BLOCK=16)
print("done")
""",
        TPK_CHECK="memory",
    )
    assert result.stdout == "done\n", result.stderr

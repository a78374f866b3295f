"""Device arrays: making, viewing, moving, DLPack, and the life of their memory."""

from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pytest

from triton_porting_kit.driver import DeviceArray, DeviceProperties, dtypes
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import DeviceError, DTypeError, InvalidArgument, OutOfMemory

ALL = list(dtypes.ALL.values())


def _samples(dtype: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
    raw = np.random.default_rng(3).integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype is dtypes.ALL["bool"]:
        raw &= 1
    return raw.view(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (4, 0, 2), (2, 3, 4)])
def test_numpy_round_trip(device: HostDevice, dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    source = _samples(dtype, shape)
    array = DeviceArray.from_numpy(source, device, dtype)
    assert (array.shape, array.dtype, array.device) == (shape, dtype, device)
    assert (array.numel(), array.nbytes) == (source.size, source.nbytes)
    assert array.element_size() == array.itemsize == dtype.itemsize
    assert array.is_contiguous()
    assert array.data_ptr() % 64 == 0
    assert array.data_ptr() != 0
    back = array.numpy()
    assert back.dtype == dtype.numpy
    assert back.shape == shape
    assert back.tobytes() == source.tobytes()
    assert np.asarray(array).tobytes() == source.tobytes()


def test_values_of_types_that_numpy_lacks(device: HostDevice) -> None:
    values = np.float32([0, 1, -2.5, 1 + 2**-8, 1 + 3 * 2**-8, np.inf])
    array = DeviceArray.from_numpy(values, device, "bfloat16")
    assert array.to_float32().tolist() == [0, 1, -2.5, 1, 1 + 2**-6, np.inf]
    assert array.numpy().dtype == np.uint16
    assert DeviceArray.from_numpy(array.numpy(), device, "bfloat16").to_float32()[2] == -2.5
    half = DeviceArray.from_numpy(np.float16([0.5]), device)
    assert half.to_float32().dtype == np.float32
    assert DeviceArray.full(3, 1.5, "float8_e4m3fn", device).to_float32().tolist() == [1.5] * 3


def test_wrong_types(device: HostDevice) -> None:
    with pytest.raises(DTypeError, match="float64 cannot become float32"):
        DeviceArray.from_numpy(np.zeros(3), device, "float32")
    with pytest.raises(DTypeError, match="bit patterns"):
        DeviceArray.from_numpy(np.zeros(3), device, "bfloat16")
    with pytest.raises(DTypeError, match="complex"):
        DeviceArray.from_numpy(np.zeros(3, np.complex64), device)
    array = DeviceArray.zeros(3, "int32", device)
    with pytest.raises(DTypeError):
        array.copy_(np.zeros(3))
    with pytest.raises(TypeError):
        array.copy_(DeviceArray.zeros(3, "uint32", device))
    for bad in ("x", 2**40, None):
        with pytest.raises(DTypeError):
            array.fill_(bad)
    with pytest.raises(InvalidArgument):
        array.fill_([1, 2, 3])
    with pytest.raises(InvalidArgument):
        array.copy_(np.zeros(4, np.int32))
    with pytest.raises(InvalidArgument, match="negative"):
        DeviceArray.empty((2, -1), "int8", device)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("value", [0, 1])
def test_full(device: HostDevice, dtype: dtypes.DType, value: int) -> None:
    array = DeviceArray.full((3, 4), value, dtype, device)
    assert (array.to_float32() == value).all()
    assert (DeviceArray.zeros((3, 4), dtype, device).to_float32() == 0).all()


VIEWS = {
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "negative": lambda x: x[-1, -2, ...],
    "steps": lambda x: x[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-2],
    "ellipsis": lambda x: x[..., 1],
    "new axis": lambda x: x[:, None, 1:3],
    "empty": lambda x: x[2:2],
    "transposed": lambda x: x.T,
    "transposed row": lambda x: x.T[3, 1:],
    "reshaped": lambda x: x.reshape(6, 4),
    "inferred": lambda x: x.reshape((2, -1, 3)),
    "whole": lambda x: x[...],
    "chained": lambda x: x.transpose(1, 0)[1:, ::2][::-1],
}


@pytest.mark.parametrize("name", list(VIEWS))
def test_views(device: HostDevice, name: str) -> None:
    source = np.arange(24, dtype=np.int32).reshape(4, 6)
    array = DeviceArray.from_numpy(source, device)
    view, expected = VIEWS[name](array), VIEWS[name](source)
    assert view.shape == expected.shape
    np.testing.assert_array_equal(view.numpy(), expected)
    np.testing.assert_array_equal(view.contiguous().numpy(), expected)
    assert view.contiguous().is_contiguous()
    # Writing through the view changes just its elements.
    view.fill_(-7)
    expected[...] = -7
    np.testing.assert_array_equal(array.numpy(), source)
    new = np.arange(expected.size, dtype=np.int32).reshape(expected.shape)
    view.copy_(new)
    expected[...] = new
    np.testing.assert_array_equal(array.numpy(), source)
    view.copy_(DeviceArray.from_numpy(new + 1, device))
    expected[...] = new + 1
    np.testing.assert_array_equal(array.numpy(), source)


def test_view_mistakes(device: HostDevice) -> None:
    array = DeviceArray.zeros((4, 6), "int32", device)
    for index in (4, -5, (0, 6), (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            array[index]
    with pytest.raises(TypeError):
        array["a"]
    with pytest.raises(InvalidArgument):
        array.reshape(5, 5)
    with pytest.raises(InvalidArgument):
        array.reshape(-1, 7)
    with pytest.raises(InvalidArgument, match="contiguous"):
        array.T.reshape(24)
    with pytest.raises(InvalidArgument):
        array.transpose(0, 0)
    assert (len(array), array.ndim, array.size(), array.size(1)) == (4, 2, (4, 6), 6)
    assert (array.stride(), array.stride(0), array.T.stride()) == ((6, 1), 6, (1, 6))
    with pytest.raises(TypeError):
        len(array[0, 0])


def test_memory_lives_as_long_as_its_last_view(device: HostDevice) -> None:
    array = DeviceArray.zeros((64, 64), "float32", device)
    view = array.T[3]
    del array
    gc.collect()
    assert device.memory_usage()[2] == 1
    assert view.numpy().sum() == 0
    del view
    gc.collect()
    assert device.memory_usage()[:3:2] == (0, 0)


def test_arrays_keep_their_device() -> None:
    array = DeviceArray.full(5, 3, "int8", HostDevice())
    gc.collect()
    assert array.numpy().tolist() == [3] * 5


def test_reset_takes_the_memory(device: HostDevice) -> None:
    array = DeviceArray.zeros(5, "int8", device)
    device.reset()
    other = [DeviceArray.zeros(5, "int8", device) for _ in range(10)]
    with pytest.raises(DeviceError, match="reset"):
        array.data_ptr()
    with pytest.raises(DeviceError, match="reset"):
        array.numpy()
    del array
    assert all(item.numpy().sum() == 0 for item in other)


def test_an_array_larger_than_any_allocation_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = HostDevice(memory_limit=1 << 20)
    found = dataclasses.replace(device.properties(), max_allocation_bytes=4096)
    monkeypatch.setattr(HostDevice, "properties", lambda self: found)
    assert DeviceArray.zeros(8192, "uint8", device).nbytes == 8192  # what the device can do is not refused
    with pytest.raises(
        OutOfMemory, match=r"memalloc.* 4194304 bytes, and one allocation of .* at most 4096$"
    ):
        DeviceArray.zeros(1 << 20, "float32", device)
    kept = DeviceArray.zeros(1 << 20, "uint8", device)
    with pytest.raises(OutOfMemory) as caught:
        DeviceArray.zeros(4096, "uint8", device)
    assert kept.nbytes
    assert "at most" not in str(caught.value)


def test_out_of_memory_leaves_nothing_behind() -> None:
    device = HostDevice(memory_limit=1000)
    with pytest.raises(OutOfMemory):
        DeviceArray.zeros(1001, "int8", device)
    with pytest.raises(OutOfMemory):
        DeviceArray.zeros((1 << 40, 1 << 40), "int8", device)
    gc.collect()
    assert device.memory_usage()[:3] == (0, 0, 0)


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL if not dtype.minifloat], ids=str)
def test_dlpack_to_numpy_shares_memory(device: HostDevice, dtype: dtypes.DType) -> None:
    array = DeviceArray.from_numpy(_samples(dtype, (3, 4)), device, dtype)
    for view in (array, array.T, array[1:, ::2]):
        shared = np.from_dlpack(view)
        assert shared.ctypes.data == view.data_ptr()
        assert shared.tobytes() == view.numpy().tobytes()
    shared = np.from_dlpack(array)
    array.fill_(1)
    assert (shared == 1).all()
    del array, view
    gc.collect()
    assert (shared == 1).all()
    assert device.memory_usage()[2] == 1


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_dlpack_to_torch_shares_memory(device: HostDevice, dtype: dtypes.DType) -> None:
    torch = pytest.importorskip("torch")
    array = DeviceArray.from_numpy(_samples(dtype, (3, 4)), device, dtype)
    tensor = torch.from_dlpack(array)
    # torch has no type for Triton's own format, whose bits it sees.
    assert tensor.dtype == getattr(torch, dtype.name, torch.uint8)
    assert tensor.data_ptr() == array.data_ptr()
    assert tensor.clone().view(torch.uint8).numpy().tobytes() == array.numpy().tobytes()
    tensor.view(torch.uint8).zero_()
    assert not array.numpy().view(np.uint8).any()


def test_dlpack_copies_and_refusals(device: HostDevice) -> None:
    array = DeviceArray.full(4, 5, "int32", device)
    copied = np.from_dlpack(array, copy=True)
    array.fill_(0)
    assert copied.tolist() == [5] * 4
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(2, 0))

    class Hidden(HostDevice):
        def properties(self) -> DeviceProperties:
            return DeviceProperties("hidden", "none", 1 << 20, 1, 0)

    hidden = DeviceArray.full(4, 5, "int32", Hidden())
    for refused in (hidden.__dlpack__, hidden.__dlpack_device__):
        with pytest.raises(BufferError, match="not visible"):
            refused()
    assert hidden.numpy().tolist() == [5] * 4
    array.copy_(hidden)
    assert array.numpy().tolist() == [5] * 4


def test_arrays_on_streams(device: HostDevice) -> None:
    stream = device.create_stream()
    array = DeviceArray.zeros((256, 256), "float32", device, stream=stream)
    array.fill_(3, stream=stream)
    other = DeviceArray.empty((256, 256), "float32", device)
    other.copy_(array, stream=stream)
    assert (other.numpy(stream=stream) == 3).all()
    device.destroy_stream(stream)


def test_what_the_autotuner_asks_for(device: HostDevice) -> None:
    array = DeviceArray.from_numpy(np.arange(6, dtype=np.int32).reshape(2, 3), device)
    copy = array.T.clone()
    assert copy.is_contiguous()
    assert array.zero_() is array
    assert not array.numpy().any()
    np.testing.assert_array_equal(copy.numpy(), np.arange(6).reshape(2, 3).T)
    array.T.copy_(copy)
    np.testing.assert_array_equal(array.numpy(), np.arange(6).reshape(2, 3))

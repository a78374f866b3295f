"""`DeviceArray`: a typed n-dimensional view of device memory, enough for bring-up without a framework."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM, Device
from triton_porting_kit.driver.dtypes import DType, as_dtype, decode, encode, float32
from triton_porting_kit.driver.host_views import HostView, set_dlpack_code
from triton_porting_kit.errors import DeviceError, DTypeError, InvalidArgument, OutOfMemory

NumpyArray = np.ndarray[Any, Any]


class Storage:
    """Memory of a device, freed with the last view of it. It keeps its device alive."""

    def __init__(self, device: Device, size: int, alignment: int) -> None:
        self.device = device
        self.generation = device.generation
        self.size = size
        try:
            self.address = device.memalloc(size, alignment)
        except OutOfMemory as error:
            largest = device.properties().largest_allocation
            if size <= largest:
                raise
            name = device.properties().name
            raise OutOfMemory(
                f"{error}; the array has {size} bytes, and one allocation of {name} at most {largest}"
            ) from error

    def __del__(self) -> None:
        # The reset has freed memory of an earlier generation; a lost device has nothing to free.
        if hasattr(self, "address") and self.generation == self.device.generation:
            with contextlib.suppress(DeviceError):
                self.device.memfree(self.address)


class DeviceArray:
    """A view of device memory. Created by `empty`, `zeros`, `full` and `from_numpy`, or from another array.

    `shape` and `strides` are in elements; `dtype` is a `triton_porting_kit.driver.dtypes.DType`. Triton accepts it as a
    kernel argument. Methods that move data take a stream, and wait for it if they return data to the host.
    """

    def __init__(
        self,
        storage: Storage,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int = 0,
    ) -> None:
        self._storage = storage
        self._offset = offset
        self._address = storage.address + offset * dtype.itemsize  # read at every launch
        self.dtype = dtype
        self.shape = shape
        self.strides = strides

    # --- construction --------------------------------------------------------------------------------------

    @classmethod
    def empty(
        cls, shape: int | Sequence[int], dtype: Any, device: Device, *, alignment: int = DEFAULT_ALIGNMENT
    ) -> DeviceArray:
        """A contiguous array with undefined contents.

        Raises `OutOfMemory`, `DTypeError`, `InvalidArgument`.
        """
        dtype = as_dtype(dtype)
        extents = _shape(shape)
        storage = Storage(device, math.prod(extents) * dtype.itemsize, alignment)
        return cls(storage, dtype, extents, _contiguous_strides(extents))

    @classmethod
    def zeros(
        cls,
        shape: int | Sequence[int],
        dtype: Any,
        device: Device,
        *,
        stream: int = DEFAULT_STREAM,
        alignment: int = DEFAULT_ALIGNMENT,
    ) -> DeviceArray:
        array = cls.empty(shape, dtype, device, alignment=alignment)
        device.memset(array.data_ptr(), 0, array.nbytes, stream)
        return array

    @classmethod
    def full(
        cls,
        shape: int | Sequence[int],
        value: Any,
        dtype: Any,
        device: Device,
        *,
        stream: int = DEFAULT_STREAM,
    ) -> DeviceArray:
        """An array with `value` everywhere; see `fill_`."""
        return cls.empty(shape, dtype, device).fill_(value, stream=stream)

    @classmethod
    def from_numpy(
        cls, array: NumpyArray, device: Device, dtype: Any = None, *, stream: int = DEFAULT_STREAM
    ) -> DeviceArray:
        """A contiguous copy of a numpy array.

        `dtype` is the array's own by default. For a type that numpy lacks, name it: float32 values are rounded to
        nearest even, and unsigned integers of its size are taken as bit patterns. Any other conversion raises
        `DTypeError`.
        """
        array = np.asarray(array)
        chosen = as_dtype(array.dtype if dtype is None else dtype)
        result = cls.empty(array.shape, chosen, device)
        device.memcpy_htod(result.data_ptr(), np.ascontiguousarray(_elements(array, chosen)), stream)
        return result

    # --- properties ----------------------------------------------------------------------------------------

    @property
    def device(self) -> Device:
        return self._storage.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.itemsize

    @property
    def data(self) -> DeviceArray:
        """The array itself; Triton's ``reinterpret`` reads this attribute."""
        return self

    def data_ptr(self) -> int:
        """Device address of the first element. Raises `DeviceError` if a reset has freed the memory."""
        storage = self._storage
        if storage.generation != storage.device.generation:
            raise DeviceError(f"the memory of this array went with a reset of {storage.device!r}")
        return self._address

    @property
    def allocation(self) -> tuple[int, int]:
        """Device address and bytes of the whole allocation."""
        return self._storage.address, self._storage.size

    def ptr_range(self) -> int:
        """Bytes of the whole allocation, by the name that Triton's backends use."""
        return self._storage.size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.itemsize

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The stride of a dimension in elements, or all of them."""
        return self.strides if dim is None else self.strides[dim]

    def is_contiguous(self) -> bool:
        expected = _contiguous_strides(self.shape)
        pairs = zip(self.shape, self.strides, expected, strict=True)
        return self.numel() == 0 or all(count == 1 or stride == wanted for count, stride, wanted in pairs)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    # --- views -------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same elements with another shape (one extent may be -1). The array must be contiguous."""
        extents = list(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
        if extents.count(-1) == 1:
            known = -math.prod(extents)
            extents[extents.index(-1)] = self.numel() // known if known else 0
        target = _shape(extents)
        if math.prod(target) != self.numel():
            raise InvalidArgument(f"reshape: {self.shape} has {self.numel()} elements, {target} has not")
        if not self.is_contiguous():
            raise InvalidArgument("reshape: the array is not contiguous; call contiguous() first")
        return DeviceArray(self._storage, self.dtype, target, _contiguous_strides(target), self._offset)

    def transpose(self, *axes: int) -> DeviceArray:
        """The view with its dimensions permuted; reversed if no axes are given."""
        order = axes or tuple(reversed(range(self.ndim)))
        if sorted(axis % self.ndim if self.ndim else axis for axis in order) != list(range(self.ndim)):
            raise InvalidArgument(f"transpose: {axes} is not a permutation of the {self.ndim} dimensions")
        shape = tuple(self.shape[axis] for axis in order)
        return DeviceArray(
            self._storage, self.dtype, shape, tuple(self.strides[a] for a in order), self._offset
        )

    @property
    def T(self) -> DeviceArray:
        return self.transpose()

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view selected by integers, slices, ``...`` and None; never a copy."""
        items = list(index) if isinstance(index, tuple) else [index]
        taken = sum(item is not None and item is not Ellipsis for item in items)
        if taken > self.ndim or sum(item is Ellipsis for item in items) > 1:
            raise IndexError(f"index {index!r} does not fit an array of {self.ndim} dimensions")
        rest: list[Any] = [slice(None)] * (self.ndim - taken)
        where = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
        items[where : where + 1] = rest
        shape, strides, offset, dim = [], [], self._offset, 0
        for item in items:
            if item is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, stride = self.shape[dim], self.strides[dim]
            if isinstance(item, slice):
                positions = range(extent)[item]
                shape.append(len(positions))
                strides.append(stride * positions.step)
                offset += stride * positions.start if len(positions) else 0
            else:
                offset += stride * range(extent)[item]  # raises IndexError, TypeError
            dim += 1
        return DeviceArray(self._storage, self.dtype, tuple(shape), tuple(strides), offset)

    # --- moving data -------------------------------------------------------------------------------------

    def numpy(self, *, stream: int = DEFAULT_STREAM) -> NumpyArray:
        """A copy in host memory; bit patterns for types that numpy lacks. Waits for `stream`."""
        return np.ascontiguousarray(self._fetch(stream)[1]).reshape(self.shape)

    def to_float32(self, *, stream: int = DEFAULT_STREAM) -> NumpyArray:
        """The values as float32 in host memory, even of types that numpy lacks. Waits for `stream`."""
        elements = self.numpy(stream=stream)
        return decode(elements, self.dtype) if self.dtype.minifloat else elements.astype(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray:
        if copy is False:
            raise ValueError(
                "device memory cannot become a numpy array without a copy; use numpy.from_dlpack"
            )
        elements = self.numpy()
        return elements if dtype is None else elements.astype(dtype)

    def contiguous(self) -> DeviceArray:
        """The array itself if it is contiguous, else a contiguous copy (made through the host)."""
        return self if self.is_contiguous() else DeviceArray.from_numpy(self.numpy(), self.device, self.dtype)

    def copy_(self, source: DeviceArray | NumpyArray, *, stream: int = DEFAULT_STREAM) -> DeviceArray:
        """Overwrite the elements with those of an array of the same shape; `DTypeError` for another type.

        The conversions of `from_numpy` apply to numpy arrays. Arrays that are not contiguous are copied through the
        host.
        """
        if tuple(source.shape) != self.shape:
            raise InvalidArgument(f"copy_: the shape is {self.shape}, the source's is {tuple(source.shape)}")
        if isinstance(source, DeviceArray):
            if source.dtype != self.dtype:
                raise DTypeError(f"copy_: the elements are {self.dtype}, the source's are {source.dtype}")
            if source.device is self.device and source.is_contiguous() and self.is_contiguous():
                self.device.memcpy_dtod(self.data_ptr(), source.data_ptr(), self.nbytes, stream)
                return self
            elements = source.numpy(stream=stream)
        else:
            elements = _elements(np.asarray(source), self.dtype)
        self._put(elements, stream)
        return self

    def fill_(self, value: Any, *, stream: int = DEFAULT_STREAM) -> DeviceArray:
        """Overwrite every element with a number. Raises `DTypeError` if the type cannot hold it."""
        try:
            source = np.asarray(value, dtype=np.float32 if self.dtype.minifloat else self.dtype.numpy)
        except (TypeError, ValueError, OverflowError) as error:
            raise DTypeError(f"fill_: {value!r} is not a value of {self.dtype}: {error}") from error
        if source.shape:
            raise InvalidArgument(f"fill_: one number is needed, not an array of shape {source.shape}")
        element = _elements(source, self.dtype)
        pattern = set(element.tobytes())
        if len(pattern) == 1 and self.is_contiguous():
            self.device.memset(self.data_ptr(), pattern.pop(), self.nbytes, stream)
        else:
            self._put(np.broadcast_to(element, self.shape), stream)
        return self

    def zero_(self) -> DeviceArray:
        """Overwrite every element with 0. The autotuner uses it (``reset_to_zero``)."""
        return self.fill_(0)

    def clone(self) -> DeviceArray:
        """A contiguous copy. The autotuner uses it (``restore_value``)."""
        return DeviceArray.empty(self.shape, self.dtype, self.device).copy_(self)

    def _span(self) -> tuple[int, int]:
        """Element offsets relative to the first element, [first, end), that contain all elements."""
        reach = [(count - 1) * stride for count, stride in zip(self.shape, self.strides, strict=True)]
        return sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + 1

    def _fetch(self, stream: int) -> tuple[NumpyArray, NumpyArray]:
        """The memory that the view spans, copied to the host, and the view of that copy."""
        first, end = self._span() if self.numel() else (0, 0)
        memory = np.empty(end - first, self.dtype.numpy)
        if self.numel():
            self.device.memcpy_dtoh(memory, self.data_ptr() + first * self.itemsize, stream)
            self.device.synchronize(stream)
        strides = [stride * self.itemsize for stride in self.strides]
        return memory, np.ndarray(self.shape, self.dtype.numpy, memory, -first * self.itemsize, strides)

    def _put(self, elements: NumpyArray, stream: int) -> None:
        if self.is_contiguous():
            self.device.memcpy_htod(self.data_ptr(), np.ascontiguousarray(elements), stream)
            return
        memory, view = self._fetch(stream)
        view[...] = elements
        self.device.memcpy_htod(self.data_ptr() + self._span()[0] * self.itemsize, memory, stream)

    # --- DLPack ------------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        self._require_host_visible()
        return (1, 0)  # kDLCPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the same memory, if the host can access it. Waits for all work of the device."""
        self._require_host_visible()
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) != (1, 0):
            raise BufferError(
                f"this memory is the host's and cannot be exported to DLPack device {dl_device}"
            )
        self.device.synchronize()
        strides = [stride * self.itemsize for stride in self.strides]
        view: Any = np.asarray(HostView(self, self.data_ptr(), self.dtype.numpy, self.shape, strides))
        if copy:
            view = view.copy()
        try:
            capsule = view.__dlpack__(max_version=max_version)
        except TypeError:  # numpy 2.0 does not know versions
            capsule = view.__dlpack__()
        if self.dtype.minifloat is not None:
            set_dlpack_code(capsule, self.dtype.dlpack_code)
        return capsule

    def _require_host_visible(self) -> None:
        if not self.device.properties().host_visible_memory:
            raise BufferError(f"the memory of {self.device!r} is not visible to the host; use numpy()")


def _elements(array: NumpyArray, dtype: DType) -> NumpyArray:
    """`array` in the form of memory of type `dtype`; see `DeviceArray.from_numpy`."""
    if array.dtype == dtype.numpy:
        return array
    if dtype.minifloat is not None and array.dtype == float32.numpy:
        return encode(array, dtype)
    also = "" if dtype.minifloat is None else f" (as bit patterns) or {float32}"
    raise DTypeError(
        f"a numpy array of {array.dtype} cannot become {dtype}; convert it to {dtype.numpy}{also}"
    )


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise InvalidArgument(f"shape {extents} has a negative extent")
    return extents


def _contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * max(shape[dim + 1], 1)
    return tuple(strides)

"""What the compiler knows of an argument: alignment, and memory of less than 2 GiB."""

from __future__ import annotations

import pytest
from triton.backends.compiler import BaseBackend

from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.host import HostDevice


class Argument:
    """An argument of a launch: an address, and the bytes behind it."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        return self.size


@pytest.mark.parametrize(
    ("address", "size", "wanted"),
    [(4096, 2**31 - 1, "DS"), (4096, 2**31, "D"), (4100, 100, "S"), (4100, 1 << 40, "")],
)
def test_letters(address: int, size: int, wanted: str) -> None:
    assert AMDBackend.get_tensor_specialization(Argument(address, size), align=True) == wanted


def test_no_range_without_buffer_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "0")
    assert AMDBackend.get_tensor_specialization(Argument(4096, 100), align=True) == "D"


def test_letters_to_attributes() -> None:
    assert AMDBackend.parse_attr("D") == [["tt.divisibility", 16]]
    assert AMDBackend.parse_attr("DS") == [["tt.divisibility", 16], ["tt.pointer_range", 32]]
    assert AMDBackend.parse_attr("") == []
    # Triton's native code would know only what all backends have in common.
    assert BaseBackend.supports_native_tensor_specialization
    assert not AMDBackend.supports_native_tensor_specialization


def test_the_whole_memory_counts() -> None:
    array = DeviceArray.zeros((100, 4), "float32", HostDevice())
    assert array.ptr_range() == array[1:].ptr_range() == 1600
    assert AMDBackend.get_tensor_specialization(array[1:], align=True) == "DS"


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert AMDBackend.get_tensor_specialization(torch.zeros(64)[1:], align=True) == "S"
    huge = torch.empty(2**31 // 4, device="meta")
    assert "S" not in AMDBackend.get_tensor_specialization(huge, align=True)

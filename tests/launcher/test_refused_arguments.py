"""Arguments and answers that a launcher refuses, by every strategy."""

from __future__ import annotations

from typing import Any

import pytest
from launcher_helpers import Buffer, Config, Descriptor, RecordingDevice, Strategy, call

from triton_porting_kit import errors
from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher.values import LAUNCH_ERRORS


class BrokenPointer:
    def data_ptr(self) -> int:
        raise RuntimeError("freed")


class InnerAttributeError:
    def data_ptr(self) -> int:
        return self.missing  # type: ignore[attr-defined, no-any-return]


REFUSED = [
    ("i32", 2**31, "argument 'a' (i32): 2147483648 does not fit; the type holds -2147483648 to 2147483647"),
    ("i8", -129, "argument 'a' (i8): -129 does not fit; the type holds -128 to 127"),
    ("u16", -1, "argument 'a' (u16): -1 does not fit; the type holds 0 to 65535"),
    ("u64", 2**64, "argument 'a' (u64): 18446744073709551616 does not fit"),
    ("i64", -(10**5000), "argument 'a' (i64): an int of 16610 bits does not fit"),
    ("u1", 1.0, "argument 'a' (u1): expected an int, got float 1.0"),
    ("i1", None, "argument 'a' (i1): expected an int, got None"),
    ("i32", 1.0, "argument 'a' (i32): expected an int, got float 1.0"),
    ("i32", None, "argument 'a' (i32): expected an int, got None"),
    ("i32", "1", "argument 'a' (i32): expected an int, got str '1'"),
    ("fp32", "1.0", "argument 'a' (fp32): expected a float, got str '1.0'"),
    ("bf16", None, "argument 'a' (bf16): expected a float, got None"),
    ("fp64", b"1", "argument 'a' (fp64): expected a float, got bytes"),
    ("fp16", 10**400, "argument 'a' (fp16): an int of 1329 bits is too large for a float"),
    ("fp16", 1j, "argument 'a' (fp16): expected a float, got complex"),
    (
        "*fp32",
        1.0,
        "argument 'a' (*fp32): expected an address, None or an object with data_ptr(), got float 1.0",
    ),
    ("*fp32", -1, "argument 'a' (*fp32): -1 does not fit"),
    ("*fp32", 2**64, "argument 'a' (*fp32): 18446744073709551616 does not fit"),
    ("*fp32", Buffer(-4), "argument 'a' (*fp32): -4 does not fit"),
    (
        "*fp32",
        Buffer("x"),
        "argument 'a' (*fp32): data_ptr() of a Buffer must return an int, returned str 'x'",
    ),  # type: ignore[arg-type]
    ("*fp32", [1], "argument 'a' (*fp32): expected an address, None or an object with data_ptr(), got list"),
]


@pytest.mark.parametrize(("type_", "value", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refused_values_name_the_parameter(
    strategy: Strategy, device: RecordingDevice, type_: str, value: Any, text: str
) -> None:
    with pytest.raises(SignatureError) as caught:
        call(strategy.make(device, {"a": type_}), value)
    assert str(caught.value).startswith(text)
    assert isinstance(caught.value, TypeError)
    assert not device.launches


def _tensors(torch: Any) -> dict[str, tuple[Any, str]]:
    """Tensors whose elements are not what lies at their address, and how the refusal begins."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    plain = torch.arange(16.0)
    freed = torch.zeros(16)
    freed.untyped_storage().resize_(0)
    with FakeTensorMode():
        fake = torch.empty(16)
    return {
        "negated": (torch._neg_view(plain), "the negation of the elements is pending; pass .resolve_neg()"),
        "imaginary": (torch.complex(plain, plain).conj().imag, "the negation of the elements is pending"),
        "meta": (torch.empty(16, device="meta"), "a meta tensor has no data"),
        "fake": (fake, "a FakeTensor has no data"),
        "sparse": (plain.to_sparse(), "a tensor of layout torch.sparse_coo is not stored as one array"),
        "freed": (freed, "the Tensor of 16 elements has no memory"),
    }


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_plain_memory_are_refused(strategy: Strategy, device: RecordingDevice) -> None:
    torch = pytest.importorskip("torch")
    launcher = strategy.make(device, {"a": "*fp32"})
    for tensor, reason in _tensors(torch).values():
        with pytest.raises(SignatureError) as caught:
            call(launcher, tensor)
        assert str(caught.value).startswith(f"argument 'a' (*fp32): {reason}")

    def inside(x: Any) -> Any:
        with pytest.raises(SignatureError, match=r"'a' \(\*fp32\): a tensor inside of torch.func"):
            call(launcher, x)
        return x

    torch.func.vmap(inside)(torch.zeros(2, 3))
    assert not device.launches
    negated = torch._neg_view(torch.arange(16.0))
    for fine in (torch.empty(0), negated.resolve_neg(), torch._neg_view(negated)):
        call(launcher, fine)
    assert len(device.launches) == 3


def test_tensors_of_the_host_are_accepted_on_the_host(device: RecordingDevice) -> None:
    """`tests/pytorch/test_device.py` has the refusal of others, which takes a torch device."""
    torch = pytest.importorskip("torch")
    launcher = Strategy("packed").make(device, {"a": "*fp32", "b": "*fp32"}, on_host=True)
    call(launcher, torch.zeros(3), Buffer(64))
    with pytest.raises(SignatureError, match="a meta tensor has no data"):
        call(launcher, Buffer(64), torch.empty(3, device="meta"))
    assert len(device.launches) == 1


def test_refused_values_inside_tuples_and_descriptors(
    strategy: Strategy, device: RecordingDevice, descriptor_flags: tuple[str, ...]
) -> None:
    launcher = strategy.make(device, {"t": ("i32", Config("i8", "fp16")), "d": "tensordesc<fp32[4, 4]>"})
    good = (1, Config(2, 3.0))
    desc = Descriptor(Buffer(64), [4, 4], [4, 1])
    cases: list[tuple[Any, Any, str]] = [
        ((1, Config(200, 3.0)), desc, "argument 't[1].scale' (i8): 200 does not fit"),
        ((1, Config(2, "x")), desc, "argument 't[1].shift' (fp16): expected a float"),
        ((1,), desc, "argument 't': expected a tuple of 2, got one of 1"),
        (5, desc, "argument 't': expected a tuple of 2, got int 5"),
        ((1, (2,)), desc, "argument 't[1]': expected a tuple of 2, got one of 1"),
        (good, 5, "argument 'd' (tensordesc<fp32[4, 4]>): expected a TensorDescriptor, got int 5"),
        (
            good,
            Descriptor(Buffer(64), [4], [1]),
            "argument 'd' (tensordesc<fp32[4, 4]>): expected 2 dimensions, ",
        ),
        (
            good,
            Descriptor(Buffer(64), [4, 4], [1]),
            "argument 'd' (tensordesc<fp32[4, 4]>): expected 2 dimensions, ",
        ),
        (
            good,
            Descriptor(Buffer(64), 4, [1]),
            "argument 'd' (tensordesc<fp32[4, 4]>): shape must be a sequence",
        ),
        (good, Descriptor("no", [4, 4], [4, 1]), "argument 'd.base' (*fp32): expected an address"),
        (
            good,
            Descriptor(Buffer(64), [4, 2**40], [4, 1]),
            "argument 'd.shape[1]' (i32): 1099511627776 does not fit",
        ),
        (good, Descriptor(Buffer(64), [4, 4], [4.5, 1]), "argument 'd.strides[0]' (i64): expected an int"),
    ]
    for tuple_, descriptor, text in cases:
        with pytest.raises(SignatureError) as caught:
            call(launcher, tuple_, descriptor)
        assert str(caught.value).startswith(text)
    assert not device.launches
    call(launcher, good, desc)
    assert len(device.launches) == 1


def test_constexprs_at_the_end_may_be_left_out(strategy: Strategy, device: RecordingDevice) -> None:
    types = {"x": "*fp32", "A": "constexpr", "n": "i32", "B": "constexpr", "C": "constexpr"}
    launcher = strategy.make(device, types)
    for rest in ((), (3,), (3, 4)):
        call(launcher, 64, 2, 7, *rest)
    assert len({launch.block for launch in device.launches}) == 1
    with pytest.raises(SignatureError, match=r"takes 5 arguments \(x, A, n, B, C\), got 2"):
        call(launcher, 64, 7)
    with pytest.raises(SignatureError, match="got 6"):
        call(launcher, 64, 2, 7, 3, 4, 5)


def test_argument_count(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"x": "*fp32", "n": "i32"})
    with pytest.raises(SignatureError, match=r"takes 2 arguments \(x, n\), got 1"):
        call(launcher, 1)
    with pytest.raises(SignatureError, match=r"takes 2 arguments \(x, n\), got 3"):
        call(launcher, 1, 2, 3)
    with pytest.raises(SignatureError, match="launch_exit_hook and the kernel's arguments; got 3 arguments"):
        launcher(1, 1, 1)
    assert not device.launches


@pytest.mark.parametrize(
    ("value", "error"), [(BrokenPointer(), RuntimeError), (InnerAttributeError(), AttributeError)]
)
def test_what_an_argument_itself_raises_comes_through(
    strategy: Strategy, device: RecordingDevice, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"freed|missing"):
        call(strategy.make(device, {"a": "*fp32"}), value)


@pytest.mark.parametrize("code", [*LAUNCH_ERRORS, 99, -1])
def test_error_codes_of_the_device(strategy: Strategy, code: int) -> None:
    left: list[Any] = []
    device = RecordingDevice(code=code, message="launch(kernel): caf\u00e9".encode() + b"\xff")
    with pytest.raises(LAUNCH_ERRORS.get(code, errors.LaunchError)) as caught:
        call(strategy.make(device, {"n": "i32"}), 1, leave=left.append)
    assert str(caught.value) == "launch(kernel): caf\u00e9\ufffd"
    assert not left
    device.message = b""
    with pytest.raises(errors.DeviceError, match=f"with code {code} and gave no reason"):
        call(strategy.make(device, {"n": "i32"}), 1)

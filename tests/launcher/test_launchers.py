"""Every launcher, the same cases: blocks bit for bit, hooks, grids, errors, lifetimes, threads."""

from __future__ import annotations

import gc
import math
import struct
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from launcher_helpers import Buffer, Config, Descriptor, RecordingDevice, Strategy, call

from triton_porting_kit.errors import GridError, MissingHook, SignatureError
from triton_porting_kit.launcher import ArgLayout, GeneratedLauncher, PackedLauncher, Signature


def launched(strategy: Strategy, types: Any, args: tuple[Any, ...], **hidden: Any) -> bytes:
    """The block that a launch with `args` hands the device."""
    device = RecordingDevice()
    names = hidden.pop("hidden_types", None)
    call(strategy.make(device, types, hidden=names), *args, **hidden)
    assert len(device.launches) == 1
    return device.launches[0].block


_SIGNED = {f"i{bits}": bits for bits in (8, 16, 32, 64)}
_UNSIGNED = {f"u{bits}": bits for bits in (8, 16, 32, 64)}
_CODES = {8: "b", 16: "h", 32: "i", 64: "q"}


# One kernel takes every type, so that the generated launcher is built once for all the values.
ALL_TYPES = {
    "p": "*fp32",
    "b1": "i1",
    "b2": "u1",
    **{name: name for name in (*_SIGNED, *_UNSIGNED)},
    "h": "fp16",
    "bf": "bf16",
    "f": "fp32",
    "f_": "f32",
    "d": "fp64",
    "q": "*fp8e4nv",
}


@pytest.mark.parametrize("extreme", ["lowest", "highest", "one", "minus_one"])
def test_every_type_is_stored_bit_for_bit(strategy: Strategy, extreme: str) -> None:
    def integer(bits: int, signed: bool) -> int:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return {"lowest": low, "highest": high, "one": 1, "minus_one": max(-1, low)}[extreme]

    number = {"lowest": -0.0, "highest": 1.5, "one": 1.0, "minus_one": -1.0}[extreme]
    flag = extreme != "lowest"
    signed = [integer(bits, True) for bits in _SIGNED.values()]
    unsigned = [integer(bits, False) for bits in _UNSIGNED.values()]
    args = (
        Buffer(integer(64, False)),
        flag,
        int(flag),
        *signed,
        *unsigned,
        *[number] * 5,
        integer(64, False),
    )
    bf16 = struct.pack("<f", number)[2:]
    # b1 at 8, b2 at 9, i8 at 10, i16 at 12, i32 at 16, i64 at 24, u8 at 32, ...
    expected = struct.pack("<Q??bxhxxixxxxq", integer(64, False), flag, flag, *signed)
    expected += struct.pack("<BxHIQ", *unsigned)
    expected += struct.pack("<e", number) + bf16 + struct.pack("<ffxxxxdQ", number, number, number, args[-1])
    assert launched(strategy, ALL_TYPES, args) == expected


FLOATS = [
    *(0.0, -0.0, 1.0, 0.1, math.pi, math.inf, -math.inf, math.nan),
    *(65504.0, 65519.99, 65520.0, 1e5, -1e6, 1e39, -1e300, 3.4028235677973366e38, 3.39e38),
    *(5e-324, 2.0**-24, 2.0**-25, 2.0**-25 * (1 + 2**-20), 3 * 2.0**-25, 2.0**-14, 2.0**-149, 2.0**-150),
    *(1e-40, 2.0**-133, 2.0**-134, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-40),
    *(1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-40, 2047.5 * 32),
    struct.unpack("<d", bytes.fromhex("010000000000f47f"))[0],
    struct.unpack("<d", bytes.fromhex("000000000000ffff"))[0],
]


@pytest.mark.parametrize("value", FLOATS, ids=repr)
def test_floats_round_once_to_nearest_even(strategy: Strategy, value: float) -> None:
    types = {"h": "fp16", "b": "bf16", "f": "fp32", "d": "fp64"}
    block = launched(strategy, types, (value,) * 4)
    assert block == ArgLayout.from_signature(Signature.from_types(types)).pack((value,) * 4)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half, single = np.float16(value), np.float32(value)
    stored_half, stored_bf16, stored_single = struct.unpack_from("<HHI", block)
    if math.isnan(value):
        sign = struct.unpack("<Q", struct.pack("<d", value))[0] >> 63
        assert stored_half & 0x7E00 == 0x7E00
        assert stored_bf16 & 0x7FC0 == 0x7FC0
        assert stored_half >> 15 == stored_bf16 >> 15 == stored_single >> 31 == sign
        assert math.isnan(struct.unpack_from("<f", block, 4)[0])
    else:
        assert stored_half == int(half.view(np.uint16))
        assert stored_single == int(single.view(np.uint32))
        assert stored_bf16 == nearest_bf16(value)
    assert block[8:] == struct.pack("<d", value)


def nearest_bf16(value: float) -> int:
    """The bfloat16 nearest to `value`, found among the two around the truncated one."""

    def decode(bits: int) -> float:
        # What would be the next number stands for infinity, so that rounding to it is a distance too.
        return 2.0**128 if bits == 0x7F80 else struct.unpack("<f", struct.pack("<I", bits << 16))[0]

    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    size = abs(value)
    if size >= 2.0**128:
        return sign | 0x7F80
    low, high = 0, 0x7F80
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decode(middle) <= size else (low, middle)
    from fractions import Fraction

    below, above = Fraction(size) - Fraction(decode(low)), Fraction(decode(high)) - Fraction(size)
    if below == above:
        return sign | (low if low % 2 == 0 else high)
    return sign | (low if below < above else high)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 31, 128, 256])
def test_any_number_of_arguments(strategy: Strategy, count: int) -> None:
    kinds = ["i8", "*fp32", "i16", "fp64", "i32", "u1", "bf16"]
    values = [3, 4096, -5, 2.5, 7, True, 1.0]
    types = {f"a{i}": kinds[i % 7] for i in range(count)}
    args = tuple(values[i % 7] for i in range(count))
    block = launched(strategy, types, args)
    assert block == ArgLayout.from_signature(Signature.from_types(types)).pack(args)
    assert len(block) % 8 == 0


def test_block_is_aligned(strategy: Strategy, device: RecordingDevice) -> None:
    call(strategy.make(device, {"x": "i64"}), 1)
    assert device.launches[0].block_address % 8 == 0


def test_a_block_of_more_than_a_kilobyte(strategy: Strategy) -> None:
    types = {f"p{i}": "*i8" for i in range(200)}
    args = tuple(range(200))
    assert launched(strategy, types, args) == struct.pack("<200Q", *args)


def test_constexprs_are_dropped(strategy: Strategy) -> None:
    types = {"x": "*fp32", "BLOCK": "constexpr", "n": "i32", "none": "constexpr"}
    assert launched(strategy, types, (16, object(), 5, None)) == struct.pack("<Qixxxx", 16, 5)


def test_constants_of_the_source_are_constexprs(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"x": "*fp32", "n": "i32", "t": ("i32", "i64")}, {"n": 4, (2, 0): 1})
    call(launcher, 16, 4, (1, 7))
    assert device.launches[0].block == struct.pack("<Qq", 16, 7)


def test_nested_tuples(strategy: Strategy) -> None:
    types = {"a": "i8", "t": ("i32", ("*fp32", "constexpr", ()), "fp16"), "c": Config("fp32", ("i64",))}
    args = (1, (2, (Buffer(64), "any", ()), 1.0), Config(2.0, (9,)))
    expected = struct.pack("<bxxxiQexxfq", 1, 2, 64, 1.0, 2.0, 9)
    assert launched(strategy, types, args) == expected
    assert launched(strategy, types, (1, [2, (Buffer(64), "any", []), 1.0], Config(2.0, [9]))) == expected


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize(("padding", "tf32"), [("zero", False), ("nan", True)])
def test_tensor_descriptors(
    strategy: Strategy, rank: int, padding: str, tf32: bool, descriptor_flags: tuple[str, ...]
) -> None:
    types = {"n": "i32", "d": f"tensordesc<fp32[{','.join(['16'] * rank)}]>", "m": "i8"}
    shape, strides = list(range(1, rank + 1)), list(range(100, 100 + rank))
    values = (7, Descriptor(Buffer(4096), shape, strides, padding, tf32), 1)
    flags = [padding == "nan", tf32][: len(descriptor_flags)]
    expected = ArgLayout.from_signature(
        Signature.from_types(
            [
                "i32",
                "*fp32",
                *["i64"] * (2 * rank),
                *["i1"] * len(flags),
                *["i32"] * rank,
                *["i64"] * rank,
                "i8",
            ]
        )
    ).pack([7, 4096, *shape, *strides, *flags, *shape, *strides, 1])
    assert launched(strategy, types, values) == expected


def test_descriptor_in_a_tuple_and_of_an_older_release(strategy: Strategy) -> None:
    class Old:
        base, shape, strides, padding = Buffer(512), (3,), (1,), "zero"

    block = launched(strategy, {"t": ("i32", "tensordesc<i8[16]>")}, ((5, Old()),))
    assert block == struct.pack("<ixxxxQqq??xxiq", 5, 512, 3, 1, False, False, 3, 1)


def test_triton_descriptor_of_a_torch_tensor(strategy: Strategy) -> None:
    torch = pytest.importorskip("torch")
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = torch.zeros(8, 16)
    block = launched(strategy, {"d": "tensordesc<fp32[4, 8]>"}, (TensorDescriptor.from_tensor(x, [4, 8]),))
    assert block == struct.pack("<Qqqqq??xxiixxxxqq", x.data_ptr(), 8, 16, 16, 1, 0, 0, 8, 16, 16, 1)


def test_pointers(strategy: Strategy) -> None:
    types = {"a": "*fp32", "b": "*kfp16", "c": "**i8", "d": "*fp8e5"}
    args = (None, 2**64 - 1, Buffer(0), Buffer(2**63))
    assert launched(strategy, types, args) == struct.pack("<4Q", 0, 2**64 - 1, 0, 2**63)


def test_any_int_has_a_truth(strategy: Strategy) -> None:
    types = {"a": "i1", "b": "u1", "c": "i1", "d": "u1"}
    args = (3, 0, -1, 2**70)
    block = launched(strategy, types, args)
    assert block[:4] == b"\1\0\1\1"
    assert block == ArgLayout.from_signature(Signature.from_types(types)).pack(args)


def test_number_like_objects(strategy: Strategy) -> None:
    class Index:
        def __index__(self) -> int:
            return 9

    types = {"a": "i32", "b": "i64", "c": "fp32", "d": "fp32", "e": "fp64", "f": "u8"}
    args = (np.int64(5), Index(), np.float32(1.5), 3, Index(), True)
    assert launched(strategy, types, args) == struct.pack("<ixxxxqffdB7x", 5, 9, 1.5, 3.0, 9.0, 1)


# --- hooks ---------------------------------------------------------------------------------------


def test_hooks_get_the_launch_metadata_around_the_launch(strategy: Strategy, device: RecordingDevice) -> None:
    events: list[Any] = []
    device.on_launch = lambda: events.append("launch")
    metadata = object()
    launcher = strategy.make(device, {"n": "i32"})
    call(
        launcher,
        1,
        launch_metadata=metadata,
        enter=lambda m: events.append(("enter", m)),
        leave=lambda m: events.append(("exit", m)),
    )
    assert events == [("enter", metadata), "launch", ("exit", metadata)]


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_an_empty_grid_launches_nothing_and_calls_the_hooks(
    strategy: Strategy, device: RecordingDevice, grid: tuple[int, int, int]
) -> None:
    events: list[str] = []
    launcher = strategy.make(device, {"n": "i32"})
    call(
        launcher, 1, grid=grid, enter=lambda m: events.append("enter"), leave=lambda m: events.append("exit")
    )
    assert events == ["enter", "exit"]
    assert not device.launches
    with pytest.raises(SignatureError, match="'n'"):
        call(launcher, "one", grid=grid)


def test_a_failing_enter_hook_stops_the_launch(strategy: Strategy, device: RecordingDevice) -> None:
    left: list[Any] = []

    def fail(metadata: Any) -> None:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        call(strategy.make(device, {"n": "i32"}), 1, enter=fail, leave=left.append)
    assert not device.launches
    assert not left


def test_a_failing_exit_hook_comes_through(strategy: Strategy, device: RecordingDevice) -> None:
    def fail(metadata: Any) -> None:
        raise KeyError("late")

    with pytest.raises(KeyError, match="late"):
        call(strategy.make(device, {"n": "i32"}), 1, leave=fail)
    assert len(device.launches) == 1


def test_a_refused_argument_comes_after_the_enter_hook(strategy: Strategy, device: RecordingDevice) -> None:
    events: list[Any] = []
    with pytest.raises(SignatureError):
        call(strategy.make(device, {"n": "i32"}), "x", enter=events.append, leave=events.append)
    assert events == [None]  # as in Triton's launchers: entered, never left


# --- grids and handles ---------------------------------------------------------------------------


def test_grid_and_handles_reach_the_device(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"n": "i32"})
    call(launcher, 1, grid=(np.int32(2), 2**31 - 1, True), stream=2**64 - 1, function=2**63)
    launch = device.launches[0]
    assert (launch.grid, launch.stream, launch.function) == ((2, 2**31 - 1, 1), 2**64 - 1, 2**63)
    assert launch.context == device.context


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        ((-1, 1, 1), "grid x must be between 0 and 2147483647, got -1"),
        ((1, 2**31, 1), "grid y must be between 0 and 2147483647, got 2147483648"),
        ((1, 1, 10**5000), "grid z .* an int of 16610 bits"),
        ((1, 1, 1.5), "grid z must be an int, got float 1.5"),
        (("4", 1, 1), "grid x must be an int, got str '4'"),
        ((None, 1, 1), "grid x must be an int, got None"),
        ((2**31 - 1, 2**31 - 1, 2**31 - 1), "the most is"),
    ],
    ids=range(7),
)
def test_bad_grids(strategy: Strategy, device: RecordingDevice, grid: tuple[Any, ...], text: str) -> None:
    events: list[Any] = []
    with pytest.raises(GridError, match=text):
        call(strategy.make(device, {"n": "i32"}), 1, grid=grid, enter=events.append)
    assert not device.launches
    assert not events


@pytest.mark.parametrize("handle", ["stream", "function"])
@pytest.mark.parametrize("value", [None, -1, 2**64, 1.0])
def test_bad_handles(strategy: Strategy, device: RecordingDevice, handle: str, value: Any) -> None:
    with pytest.raises(SignatureError, match=f"'{handle}'"):
        call(strategy.make(device, {"n": "i32"}), 1, **{handle: value})
    assert not device.launches


# --- hidden arguments ----------------------------------------------------------------------------


def test_hidden_arguments_follow_the_kernels(strategy: Strategy) -> None:
    hidden = {"scratch": "*i8", "rank": "i32"}
    block = launched(strategy, {"n": "i8"}, (1,), hidden_types=hidden, rank=3, scratch=Buffer(256))
    assert block == struct.pack("<bxxxxxxxQixxxx", 1, 256, 3)


def test_hidden_arguments_are_checked(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"n": "i8"}, hidden={"scratch": "*i8", "rank": "i32"})
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "needs the hidden arguments scratch, rank"),
        ({"scratch": 0}, "needs the hidden arguments rank"),
        ({"scratch": 0, "rank": 1, "other": 2}, "has no hidden arguments other; it takes scratch, rank"),
        ({"scratch": 0, "rank": "x"}, "argument 'rank' \\(i32\\)"),
    ]
    for given, text in cases:
        with pytest.raises(SignatureError, match=text):
            call(launcher, 1, **given)
    with pytest.raises(SignatureError, match="it takes none"):
        call(strategy.make(device, {"n": "i8"}), 1, other=1)
    assert not device.launches


# --- lifetimes and threads -----------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [Strategy("packed"), Strategy("generated")], ids=str)
def test_arguments_live_until_the_device_returns(strategy: Strategy, device: RecordingDevice) -> None:
    alive: list[bool] = []
    references: list[weakref.ref[Buffer]] = []

    class Fresh:
        """Makes a new base each time it is asked."""

        shape, strides, padding = (4,), (1,), "zero"

        @property
        def base(self) -> Buffer:
            buffer = Buffer(128)
            references.append(weakref.ref(buffer))
            return buffer

    def look() -> None:
        gc.collect()
        alive.append(all(reference() is not None for reference in references))

    device.on_launch = look
    launcher = strategy.make(device, {"t": ("tensordesc<fp32[4]>",)})
    call(launcher, (Fresh(),))
    assert alive == [True]
    assert len(references) == 1
    assert references[0]() is None


def test_nothing_leaks(strategy: Strategy, device: RecordingDevice) -> None:
    import sys

    launcher = strategy.make(device, {"t": ("*fp32", "tensordesc<fp32[4]>"), "n": "i64", "f": "fp32"})
    buffer, number = Buffer(10**6), 10**12
    descriptor = Descriptor(buffer, [4], [1])
    members = (buffer, descriptor)
    hook = lambda metadata: None  # noqa: E731
    watched = (buffer, number, descriptor, members, hook)

    def run() -> None:
        call(launcher, members, number, 1.0, enter=hook, leave=hook)
        for bad in ((members, "x", 1.0), ((buffer,), number, 1.0), ((buffer, 5), number, 1.0)):
            with pytest.raises(SignatureError):
                call(launcher, *bad)

    run()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(50):
        run()
    assert [sys.getrefcount(item) for item in watched] == before


@pytest.mark.parametrize("kind", [PackedLauncher, GeneratedLauncher])
def test_a_device_without_a_native_routine_is_told_what_to_do(kind: Any) -> None:
    source = SimpleNamespace(signature={"n": "i32"}, constants={})
    with pytest.raises(
        MissingHook, match=r"`launch_entry` returned None.*PythonLauncher\.of\(source, metadata, device\)"
    ):
        kind(source, None, None)


def test_the_launcher_goes_away(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"n": "i32"})
    reference = weakref.ref(launcher)
    del launcher
    gc.collect()
    assert reference() is None


def test_threads_launch_at_once(strategy: Strategy, device: RecordingDevice) -> None:
    launcher = strategy.make(device, {"x": "*fp32", "t": ("i32", "fp64")})
    both_inside = threading.Barrier(2, timeout=60)
    device.on_launch = both_inside.wait  # passes only if two launches are in the device together

    def work(thread: int) -> None:
        for i in range(50):
            call(launcher, Buffer(thread * 1000 + i), (i, float(thread)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {struct.pack("<Qixxxxd", t * 1000 + i, i, float(t)) for t in range(2) for i in range(50)}
    assert {launch.block for launch in device.launches} == expected

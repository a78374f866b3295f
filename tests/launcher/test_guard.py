"""Launches that do not keep their kernel's promises go to the kernel's other version."""

from __future__ import annotations

import random
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from launcher_helpers import RecordingDevice, Strategy, call

from triton_porting_kit.abi.intervals import BINARY, OPERANDS, UNARY, Op, Step
from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher import BuildOptions, RuntimeSymbol
from triton_porting_kit.launcher.guard import Guard
from triton_porting_kit.launcher.layout import ArgLayout
from triton_porting_kit.launcher.signature import Signature
from triton_porting_kit.toolchain import compat

OTHER = 0xABBA
SIGNATURE = {"x": "*fp32", "small": "i8", "n": "i32", "far": "i64"}
#: program_id(0) * n + small, in 32 bits.
STEPS: list[Step] = [
    (Op.PROGRAM, 0, 0),
    (Op.ARGUMENT, 2, 32),
    (Op.MULTIPLY, 0, 1),
    (Op.ARGUMENT, 1, 8),
    (Op.ADD, 2, 3),
    (Op.FITS, 4, 32),
]


def metadata(steps: Sequence[Step]) -> Any:
    return types.SimpleNamespace(promises=[int(number) for step in steps for number in step])


class Compiler:
    """Stands for Triton: counts what it compiles, and fails if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.function = OTHER
        monkeypatch.setattr(compat, "compile_again", self._compile)
        monkeypatch.setattr(compat, "loaded_function", lambda kernel: self.function)

    def _compile(self, source: Any, metadata: Any, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        self.compiled.append(options)
        return object()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    return Compiler(monkeypatch)


@pytest.mark.parametrize(
    ("small", "n", "grid", "other"),
    [
        (0, 2**20, (2048, 1, 1), False),
        (127, 2**31 - 128, (2, 1, 1), False),
        (127, 2**31 - 127, (2, 1, 1), True),
        (0, -(2**31), (2, 7, 7), False),
        (-1, -(2**31), (2, 7, 7), True),
        (-1, -(2**31), (1, 7, 7), False),
        (0, 2**31 - 1, (2**31 - 1, 1, 1), True),
    ],
)
def test_arguments_and_grid_decide(
    strategy: Strategy, device: RecordingDevice, compiler: Compiler,
    small: int, n: int, grid: tuple[int, int, int], other: bool,
) -> None:  # fmt: skip
    launcher = strategy.make(device, SIGNATURE, metadata=metadata(STEPS))
    call(launcher, 0x1000, small, n, 5, grid=grid, function=0xF00)
    (launch,) = device.launches
    assert launch.function == (OTHER if other else 0xF00)
    assert launch.grid == grid
    assert launch.context == device.context
    assert compiler.compiled == [{"offsets_may_wrap": True}] * other


def test_the_other_version_is_compiled_once_and_asked_for_each_time(
    strategy: Strategy, device: RecordingDevice, compiler: Compiler
) -> None:
    launcher = strategy.make(device, SIGNATURE, metadata=metadata(STEPS))
    for function in (OTHER, OTHER + 1):
        compiler.function = function  # as after a reset of the device
        call(launcher, 0, 1, 2**31 - 1, 0, grid=(2, 1, 1))
        call(launcher, 0, 1, 1, 0, grid=(2, 1, 1))
    assert [launch.function for launch in device.launches] == [OTHER, 0xF00, OTHER + 1, 0xF00]
    assert len(compiler.compiled) == 1


def test_its_errors_come_through(strategy: Strategy, device: RecordingDevice, compiler: Compiler) -> None:
    launcher = strategy.make(device, SIGNATURE, metadata=metadata(STEPS))
    compiler.error = ZeroDivisionError("of the compiler")
    with pytest.raises(ZeroDivisionError, match="of the compiler"):
        call(launcher, 0, 1, 2**31 - 1, 0, grid=(2, 1, 1))
    assert not device.launches
    compiler.error = None
    call(launcher, 0, 1, 2**31 - 1, 0, grid=(2, 1, 1))
    assert len(device.launches) == 1


def test_an_empty_grid_asks_nothing(strategy: Strategy, device: RecordingDevice, compiler: Compiler) -> None:
    launcher = strategy.make(device, SIGNATURE, metadata=metadata(STEPS))
    call(launcher, 0, 1, 2**31 - 1, 0, grid=(0, 1, 1))
    assert not device.launches
    assert not compiler.compiled


def test_several_threads_may_ask_at_once(device: RecordingDevice, compiler: Compiler) -> None:
    launcher = Strategy("packed").make(device, SIGNATURE, metadata=metadata(STEPS))
    threads = [
        threading.Thread(target=call, args=(launcher, 0, 1, n, 0), kwargs={"grid": (2, 1, 1)})
        for n in [2**31 - 1, 1] * 8
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(launch.function for launch in device.launches) == [0xF00] * 8 + [OTHER] * 8
    assert len(compiler.compiled) == 1


def test_a_routine_that_is_linked_is_guarded_too(
    tmp_path: Path, compiler: Compiler, device: RecordingDevice
) -> None:
    """It fails with the function that it is given."""
    header = tmp_path / "vendor.h"
    header.write_text(
        """#include <cstdint>
#include <cstdio>
inline int32_t vendor_launch(void *, uint64_t, uint64_t function, uint32_t, uint32_t, uint32_t, const void *, uint64_t,
                             char *message, uint64_t size) {
  std::snprintf(message, size, "%llx", static_cast<unsigned long long>(function));
  return 4;
}
"""
    )
    launcher = Strategy("generated").make(
        device, SIGNATURE, metadata=metadata(STEPS), runtime=RuntimeSymbol("vendor_launch", '"vendor.h"'),
        options=BuildOptions(compile_flags=(f"-I{tmp_path}",)),
    )  # fmt: skip
    for n, function in ((1, "f00"), (2**31 - 1, "abba")):
        with pytest.raises(Exception, match=function):
            call(launcher, 0, 1, n, 0, grid=(2, 1, 1))


@pytest.mark.parametrize("step", [(Op.ARGUMENT, 2, 64), (Op.ARGUMENT, 4, 32)])
def test_promises_of_another_signature_are_refused(
    strategy: Strategy, device: RecordingDevice, step: Step
) -> None:
    with pytest.raises(SignatureError, match=r"small: i8, n: i32, far: i64; compile the kernel again"):
        strategy.make(device, SIGNATURE, metadata=metadata([step, (Op.FITS, 0, 32)]))


@pytest.mark.parametrize(
    "numbers",
    [
        [0, 1],
        [99, 0, 0],
        [Op.ADD, 0, 0],
        [Op.CONSTANT, 1, 0, Op.ADD, 0, 1],
        [Op.CONSTANT, 1, 0, Op.ADD, -1, 0],
        [Op.CONSTANT, 2**63, 0],
        [Op.PROGRAM, 3, 0],
        [Op.INTEGER, 65, 0],
        [Op.CONSTANT, 1, 0, Op.FITS, 0, 0],
        [Op.ARGUMENT, -1, 32],
        ["a", "b", "c"],
    ],
)  # fmt: skip
def test_damaged_promises_are_refused(
    strategy: Strategy, device: RecordingDevice, numbers: list[Any]
) -> None:
    with pytest.raises(SignatureError, match=r"compile (it|the kernel) again"):
        strategy.make(device, SIGNATURE, metadata=types.SimpleNamespace(promises=numbers))


def test_native_code_and_the_reference_agree(device: RecordingDevice, compiler: Compiler) -> None:
    rng = random.Random(1)
    layout = ArgLayout.from_signature(Signature.from_types(SIGNATURE))
    bits = {1: 8, 2: 32, 3: 64}
    kept = 0
    for _ in range(2000):
        steps = _random_steps(rng, bits)
        guard = Guard(None, metadata(steps), layout)
        launcher = Strategy("packed").make(device, SIGNATURE, metadata=metadata(steps))
        for _ in range(3):
            values = [
                0,
                *(rng.choice((0, 1, -1, 3, -(1 << (b - 1)), (1 << (b - 1)) - 1)) for b in bits.values()),
            ]
            grid = tuple(rng.choice((1, 2, 1000)) for _ in range(3))
            call(launcher, *values, grid=grid)
            expected = guard.fits(layout.pack(values), grid)
            assert (device.launches.pop().function == 0xF00) == expected, (steps, values, grid)
            kept += expected
    assert 1000 < kept < 5000


def _random_steps(rng: random.Random, bits: dict[int, int]) -> list[Step]:
    steps: list[Step] = []
    for _ in range(rng.randint(2, 12)):
        op = rng.choice([op for op in Op if op != Op.FITS and (steps or not OPERANDS[op])])
        operands = [rng.randrange(len(steps)) for _ in range(OPERANDS[op])]
        if op == Op.CONSTANT:
            operands = [rng.choice((0, 1, -1, 64, 2**33, 2**62, -(2**62), -(2**63)))]
        elif op == Op.ARGUMENT:
            number = rng.choice(list(bits))
            operands = [number, bits[number]]
        elif op == Op.INTEGER:
            operands = [rng.choice((8, 32, 64))]
        elif op in (Op.PROGRAM, Op.PROGRAMS):
            operands = [rng.randrange(3)]
        elif op in UNARY:
            operands.append(rng.choice((8, 32, 64)))
        assert op in BINARY or len(operands) < 3
        a, b = (*operands, 0)[:2]
        steps.append((op, a, b))
    return [*steps, (Op.FITS, rng.randrange(len(steps)), rng.choice((8, 32)))]

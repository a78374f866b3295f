"""Runs kernels of the structured form, one program after the other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TextIO

import numpy as np

from triton_porting_kit.abi.intervals import Interval, Op
from triton_porting_kit.abi.intervals import Launch as IntervalsOfLaunch
from triton_porting_kit.compiler.dialect import having
from triton_porting_kit.compiler.dialect.schema import Trait
from triton_porting_kit.errors import PortingKitError

from .errors import At, BrokenPromise, WaitsForOthers
from .memory import Memory
from .program import Block, Kernel, Operation, Value
from .table import HANDLERS, STRAIGHT, Handler

TERMINATORS = having(Trait.TERMINATOR)
_CALLS = ("func.call", "tpk.call")
_WAITS = ("tpk.atomic_poll", "tpk.npu_atomic_poll", "scf.while")
_ACCESSES = having(Trait.READS) | having(Trait.WRITES)
_PATIENCE = 100
"""Rounds in which every program waits and memory does not change, after which the launch counts as deadlocked."""


class Run:
    """A running program of the grid: the values computed so far."""

    def __init__(self, launch: Launch, program: tuple[int, int, int]) -> None:
        self.program = program
        self.grid = launch.grid
        self.memory = launch.memory
        self.kernel = launch.kernel
        self.local: dict[Any, int] = {} if launch.takes_turns else launch.local
        """The addresses of local arrays (see `chips`)."""
        self.wide_regions: dict[Block, Block] = {}
        """Regions rewritten for f32, which `tiles` creates once."""
        self._launch = launch
        self._values: dict[Value, Any] = {}

    def __getitem__(self, value: Value) -> Any:
        return self._values[value]

    def block(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Execute a block. Returns the operands of its terminator."""
        values = self._values
        values.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            operands = [values[operand] for operand in op.operands]
            if op.name in TERMINATORS:
                return operands
            handler = self._launch.handlers.get(op.name)
            if handler is None:
                raise op.unknown(
                    "this is not an operation of the structured form",
                    "use the operations that docs/architecture.md lists",
                )
            try:
                result = handler(self, op, *operands)
            except PortingKitError:
                raise
            except Exception as error:
                if not hasattr(error, "__notes__"):  # not from an operation inside this one
                    error.add_note(f"in the interpreter, at {self.at(op)}")
                raise
            if len(op.results) == 1 and not isinstance(result, tuple):
                values[op.results[0]] = result
            elif op.results:
                values.update(zip(op.results, result, strict=True))
        return []

    def call(self, op: Operation, name: str, values: Sequence[Any]) -> list[Any]:
        """Call a function. Returns its results."""
        functions = self._launch.kernel.functions
        if name not in functions:
            raise op.unknown(f"the module has no function {name}", "define it in the module, or inline it")
        return self.block(functions[name], values)

    def is_straight(self, block: Block) -> bool:
        """Whether a block only computes elements, so that its scalars may be arrays."""
        return all(
            op.name in TERMINATORS
            or op.name in STRAIGHT
            or (
                op.name in _CALLS
                and self.is_straight(self._launch.kernel.functions[str(op.attributes["callee"].value)])
            )
            for op in block.operations
        )

    def at(self, op: Operation, element: tuple[int, ...] | None = None) -> At:
        """The location of an operation in this program."""
        return At(op.name, op.location, self.program, element)

    def tell(self, line: str) -> None:
        """Print a line of the kernel's output."""
        print(line, file=self._launch.output)

    def wait(self, op: Operation, *, limited: bool = False) -> None:
        """Let other programs run. Raises `WaitsForOthers` if none can, unless the wait is `limited`."""
        self._launch.turns.pass_on(self.at(op), limited=limited)

    def turn(self, op: Operation, carried: Sequence[Any], before: Sequence[Any]) -> None:
        """Let other programs run between two iterations of a loop, which may wait for them.

        The loop waits if it carries the same values as `before`: then only other programs can end it. Raises
        `WaitsForOthers` if no other program can run either.
        """
        if self._launch.takes_turns:
            pairs = zip(carried, before, strict=True)
            changes = any(np.asarray(a).tobytes() != np.asarray(b).tobytes() for a, b in pairs)
            self.wait(op, limited=changes)


class Launch:
    """A kernel, its grid, the memory that it accesses, and its output.

    `handlers` execute the operations; pass others to observe or replace some (see `table.HANDLERS`).
    """

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        memory: Memory,
        output: TextIO | None = None,
        *,
        handlers: Mapping[str, Handler] = HANDLERS,
    ) -> None:
        self.kernel, self.grid, self.memory, self.handlers = kernel, grid, memory, handlers
        self.output = sys.stdout if output is None else output
        self.takes_turns = _waits(kernel)
        self.turns: Turns = _Turns(memory)
        self.local: dict[Any, int] = {}

    def run(self, arguments: Sequence[Any]) -> None:
        """Run every program with the values of the kernel's parameters; pointers are addresses.

        Raises `BrokenPromise` if the kernel was not compiled for such a launch.
        """
        self._keeps_promises(arguments)
        x, y, z = self.grid
        programs = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        if self.takes_turns:
            self.memory.counts_changes = True
            self.turns.run([partial(self.program, program, arguments) for program in programs])
        else:
            for program in programs:
                self.program(program, arguments)

    def _keeps_promises(self, arguments: Sequence[Any]) -> None:
        numbers = self.kernel.promises
        steps = [(Op(op), a, b) for op, a, b in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)]

        def argument(number: int, _bits: int) -> Interval:
            return int(arguments[number]), int(arguments[number])

        def programs(axis: int) -> Interval:
            return self.grid[axis], self.grid[axis]

        if not IntervalsOfLaunch(argument, programs).fits(steps):
            raise BrokenPromise(self.kernel.name)

    def program(self, program: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Run the program at a position of the grid."""
        with np.errstate(all="ignore"):
            Run(self, program).block(self.kernel.body, arguments)


def _waits(kernel: Kernel) -> bool:
    """Whether programs may wait for each other: they poll, or have an unbounded loop that accesses memory."""

    def accesses(block: Block) -> bool:
        return any(
            op.name in _ACCESSES or op.name in _CALLS or any(map(accesses, op.regions))
            for op in block.operations
        )

    def in_block(block: Block) -> bool:
        return any(
            (op.name in _WAITS and (not op.regions or any(map(accesses, op.regions))))
            or any(map(in_block, op.regions))
            for op in block.operations
        )

    return any(map(in_block, (kernel.body, *kernel.functions.values())))


class Turns(Protocol):
    """How programs that may wait for each other run."""

    def run(self, programs: Sequence[Callable[[], None]]) -> None:
        """Run all programs. Raises what the first failing one raises."""

    def pass_on(self, at: At, *, limited: bool) -> None:
        """Called by a program that waits: let others run. Raises `WaitsForOthers` if none can; not if `limited`."""


class _Turns:
    """Programs that take turns: one runs at a time, each on a thread of its own, until it ends or waits."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._all = self._idle = 0
        self._seen = -1

    def run(self, programs: Sequence[Callable[[], None]]) -> None:
        """Run all programs. Raises what the first failing one raises."""
        pending = [_Turn(program) for program in programs]
        self._all = len(pending)
        queue = pending
        try:
            while queue:
                queue = [turn for turn in queue if not turn.go_on()]
        finally:
            for turn in pending:
                turn.cancel()

    def pass_on(self, at: At, *, limited: bool) -> None:
        current = threading.current_thread()
        if not isinstance(current, _Turn):
            return
        if self._memory.changes != self._seen or limited:
            self._seen, self._idle = self._memory.changes, 0
        self._idle += 1
        if self._idle > _PATIENCE * self._all:
            raise WaitsForOthers(at)
        current.give_back()


class _Cancelled(BaseException):
    """Ends a program whose launch has failed."""


class _Turn(threading.Thread):
    """A program that runs only during its turn."""

    def __init__(self, program: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._program = program
        self._mine, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = self._is_cancelled = False
        self._error: BaseException | None = None

    def go_on(self) -> bool:
        """Run until the program waits or ends. Returns whether it ended; raises what it raised."""
        if not self.ident:
            self.start()
        self._mine.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error
        return self._ended

    def run(self) -> None:
        self._mine.acquire()
        try:
            if not self._is_cancelled:
                self._program()
        except _Cancelled:
            pass
        except BaseException as error:  # raised again by the launch
            self._error = error
        self._ended = True
        self._back.release()

    def give_back(self) -> None:
        """Called by the program: let others run."""
        self._back.release()
        self._mine.acquire()
        if self._is_cancelled:
            raise _Cancelled

    def cancel(self) -> None:
        """End the program if it is still waiting."""
        if self.ident and not self._ended:
            self._is_cancelled = True
            self._mine.release()
            self.join()

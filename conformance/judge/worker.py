"""The harness in a candidate's process: loads the candidate, and makes, times and inspects its calls.

It answers ``{"open": …}`` with ``{"opened": …}``, and each ``{"call": …}`` with ``{"called": …}``. Results are in
shared memory. The judge trusts nothing that this process reports: it compares the results itself, and checks reported
times against its own clock.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.judge import sandbox
from triton_porting_kit.conformance.judge.arrays import Arrays, make
from triton_porting_kit.conformance.judge.candidate import NoEntry, both, prepare, results_of
from triton_porting_kit.conformance.judge.errors import JudgeError
from triton_porting_kit.conformance.judge.exchange import Gone, Line, Memory
from triton_porting_kit.conformance.judge.values import Place, unflatten
from triton_porting_kit.conformance.judge.watch import (
    Originals,
    Timers,
    Watch,
    is_plain_array,
    other_threads,
    watch_operators,
)
from triton_porting_kit.replay import recording
from triton_porting_kit.replay.settings import DEFAULT_LIMIT, Settings


def serve(line: Line, inputs: Memory, outputs: Memory) -> None:
    """Answer the judge until it closes the line."""
    try:
        order = line.receive()["open"]
        worker = Worker(line, inputs, outputs)
        line.send(worker.open(order))
        while True:
            order = line.receive()
            line.send(worker.measure(order["measure"]) if "measure" in order else worker.call(order["call"]))
    except Gone:
        pass


class Worker:
    """One candidate in one process."""

    def __init__(self, line: Line, inputs: Memory, outputs: Memory) -> None:
        self._line, self._inputs, self._outputs = line, inputs, outputs
        self._arrays: Arrays
        self._kept: dict[tuple[int, str, tuple[int, ...]], Any] = {}
        self._launches = 0
        self._operators: set[str] = set()
        self._clock = time.perf_counter
        self._mode: Any = None
        self._host = False
        self._context = contextlib.ExitStack()

    # --- opening -------------------------------------------------------------------------------------

    def open(self, order: dict[str, Any]) -> dict[str, Any]:
        """Choose the backend, restrict the process, and load the candidate."""
        try:
            opened, content = self._prepare(order)
        except Exception as error:
            message = str(error) if isinstance(error, JudgeError) else _said(error)
            return {"failed": {"where": "backend", "message": message, "trace": _trace(error)}}
        path = Path(order["candidate"])
        recordings = str(Path(order["work"], order["record"])) if order["record"] else ""
        self._watch = Watch(str(path), self._line.send, recordings)
        self._originals, self._timers = Originals(), Timers()
        self._watch.start()
        self._watch.armed = not order["null"]
        try:
            self._entry = prepare(order["setup"], path, self._arrays, content)
        except BaseException as error:
            where = "entry" if isinstance(error, NoEntry) else "candidate"
            return {"failed": {"where": where, "message": _said(error), "trace": _trace(error)}}
        return {"opened": opened}

    def _prepare(self, order: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[Place, memoryview]]]:
        """Prepare the process before the candidate's code runs. Returns its properties and the weights."""
        work = Path(order["work"])
        os.environ["TRITON_DEFAULT_BACKEND"] = order["backend"]
        os.environ["TRITON_CACHE_DIR"] = str(work / "cache")
        os.environ["HOME"] = os.environ["TMPDIR"] = str(work)
        os.chdir(work)
        isolation = sandbox.enter(work)
        if order["record"]:
            self._record(work / order["record"])
        driver = self._driver(order)
        device = getattr(driver, "device", None)
        self._host = bool(
            device is not None and hasattr(device, "properties") and device.properties().in_process
        )
        self._arrays = make(driver, order["arrays"], order["torch"])
        if order["torch"] and not order["null"]:
            from triton_porting_kit.conformance.judge.formats.tensors import on_device

            self._context.enter_context(on_device(str(driver.get_active_torch_device())))
        if "torch" in sys.modules and not order["null"]:
            self._mode = watch_operators(self._operators)
        weights = [Place.of(item) for item in order["weights"]]
        size = max((place.offset + place.size for place in weights), default=0)
        raw = self._inputs.view(size) if size else memoryview(b"")
        content = [(place, raw[place.offset : place.offset + place.size]) for place in weights]
        opened = {"isolation": isolation, "arrays": self._arrays.name, "device": _device(driver)}
        return opened | {"records": recording.can_record(driver)}, content

    def _record(self, folder: Path) -> None:
        """Record the launches of this process, so that the origin of their operands can be determined."""
        recording.start(Settings(folder, "*", None, DEFAULT_LIMIT))

    def _driver(self, order: dict[str, Any]) -> Any:
        from triton.runtime import driver

        active = driver.active
        active.get_current_target()
        if order["mute"]:
            active.launcher_cls = self._mute
        return active

    def _mute(self, source: Any, metadata: Any) -> Any:
        """A launcher that counts launches and does nothing."""

        def launch(*arguments: Any, **hidden: Any) -> None:
            self._launches += 1

        return launch

    # --- calling -------------------------------------------------------------------------------------

    def call(self, order: dict[str, Any]) -> dict[str, Any]:
        """Make one call: read the inputs, call the candidate, and store the results."""
        try:
            return {"called": {"number": order["number"], **self._call(order)}}
        except BaseException as error:
            if isinstance(error, Gone):
                raise
            said = {"number": order["number"], "error": _said(error), "trace": _trace(error)}
            return {"called": said | self._seen()}

    def measure(self, order: dict[str, Any]) -> dict[str, Any]:
        """Measure the limits of the machine."""
        from triton_porting_kit.conformance.judge.roof import measure

        try:
            return {"measured": measure(self._arrays, **order, host=self._host)}
        except Exception as error:
            return {"error": _said(error)}

    def _call(self, order: dict[str, Any]) -> dict[str, Any]:
        arrays, clock = self._arrays, self._clock
        leaves, results = ([Place.of(item) for item in order[key]] for key in ("leaves", "results"))
        raw = self._inputs.view(order["bytes"])
        made = []
        for number, place in enumerate(leaves):
            array = self._array(number, place, order["reuse"])
            arrays.write(array, raw[place.offset : place.offset + place.size])
            made.append(array)
        outs = [self._array(-1 - number, place, order["reuse"]) for number, place in enumerate(results)]
        for out, place in zip(outs, results, strict=True):
            arrays.poison(out, place.size)
        arguments = list(unflatten(order["arguments"], made))
        given = outs if order["given"] or order["null"] else []
        arrays.poison_allocations(order["check"])
        self._operators.clear()
        mode = self._mode if order["check"] else None
        start, end = arrays.clock()
        arrays.wait(True)
        begin = clock()
        with both(mode):
            if start is not None:
                arrays.mark(start)
            found = self._entry(*arguments, *(given if order["given"] else []))
            if end is not None:
                arrays.mark(end)
        arrays.wait(order["check"] is False)
        finish = clock()
        arrays.poison_allocations(False)
        shown = given or results_of(found)
        shown = [*shown, *(made[position] for position in order["writes"])]
        said = self._store(shown, results)
        late = False
        if order["check"]:
            arrays.wait(True)
            late = said != self._store(shown, results, again=True)
        changed = self._changed(made, leaves, raw, order["may_change"])
        elapsed = arrays.elapsed(start, end) if start is not None else None
        return {
            "wall": finish - begin,
            "device": elapsed,
            "results": [[name, list(shape)] for name, shape, _ in said],
            "lazy": [type(item).__qualname__ for item in shown if not is_plain_array(item)],
            "late": late,
            "changed": changed,
            **(self._seen() if order["check"] else {}),
        }

    def _array(self, number: int, place: Place, reuse: bool) -> Any:
        """An array for a call. With `reuse`, that of the previous call, which exposes caching by identity."""
        key = (number, place.kind, place.shape)
        if not reuse or key not in self._kept:
            self._kept[key] = self._arrays.empty(place)
        return self._kept[key]

    def _store(
        self, shown: list[Any], results: list[Place], again: bool = False
    ) -> list[tuple[str, tuple[int, ...], int]]:
        """Copy results to the shared memory. Returns their types, shapes and hashes."""
        said = []
        size = max((place.offset + place.size for place in results), default=0)
        target = self._outputs.view(size) if size else memoryview(b"")
        for number, item in enumerate(shown[: 2 * len(results)]):
            name, shape, raw = self._arrays.read(item)
            if number < len(results) and not again:
                place = results[number]
                if len(raw) == place.size:
                    target[place.offset : place.offset + place.size] = raw
            said.append((name, shape, hash(raw)))
        return said

    def _changed(self, made: list[Any], leaves: list[Place], raw: memoryview, may: list[int]) -> list[int]:
        found = []
        for number, (array, place) in enumerate(zip(made, leaves, strict=True)):
            if number not in may and self._arrays.read(array)[2] != bytes(
                raw[place.offset : place.offset + place.size]
            ):
                found.append(number)
        return found

    def _seen(self) -> dict[str, Any]:
        return {
            "operators": sorted(self._operators)[:50],
            "replaced": self._originals.replaced()[:50],
            "launches": self._launches + recording.Fixed.launches,
            "threads": other_threads(),
            "timers": self._timers.started(),
        }


def _device(driver: Any) -> str:
    device = getattr(driver, "device", None)
    if device is None or not hasattr(device, "properties"):
        return str(driver.get_current_target())
    return str(device.properties().name)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-4000:]

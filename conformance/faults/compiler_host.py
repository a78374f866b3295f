"""Faults in the compiler's interface to Triton, and in program IDs, assertions and output of kernels."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Callable
from typing import Any

from triton_porting_kit.conformance.faults.fault import Apply, Table, both, method, rewrite
from triton_porting_kit.conformance.faults.rewriting import attributes, each, replaced, written

TABLE = Table()

# One or a few lines per fault.
# fmt: off


def _plant(name: str, sentence: str, apply: Apply, *caught_by: str, **fields: Any) -> None:
    TABLE.add("compiler", name, sentence, apply, *caught_by, **fields)


def _last_stage(change: Callable[[Any, bytes, Any], bytes]) -> Apply:
    """Change the object. `change` receives the backend, the object and the metadata, which it may modify."""

    def pipeline(real: Any, self: Any, options: Any) -> Any:
        found = real(self, options)
        last = found.stages[-1]

        def run(source: Any, metadata: Any) -> bytes:
            return change(self, last.run(source, metadata), metadata)

        return found.replace(last.name, dataclasses.replace(last, run=run))

    return method("backend", pipeline=pipeline)


def _other_name(self: Any, binary: bytes, metadata: Any) -> bytes:
    metadata["name"] += "_0"
    return binary


_OBJECTS: dict[str, bytes] = {}


def _stale(self: Any, binary: bytes, metadata: Any) -> bytes:
    return _OBJECTS.setdefault(metadata["name"], binary)


ADD = "language/arithmetic/add-i32-*"
_plant("kernel-name", "the name in the metadata is not the kernel's", _last_stage(_other_name), ADD)
_plant("object-cut", "the end of the object is missing", _last_stage(lambda self, binary, metadata: binary[: len(binary) // 2]), ADD)
_plant("object-empty", "the object is empty", _last_stage(lambda self, binary, metadata: b""), ADD)
_plant("stale-object", "a kernel's second variant gets the object of the first", _last_stage(_stale), "runtime/specialization/widths*", "registration/hashes/stale-source", "language/arithmetic/sub-i*-tile_17x4")

_plant("assert-removed", "device_assert is left out", rewrite("structured", each(r"tpk\.assert", lambda operation: "")), "runtime/device/default-failure", "runtime/failures/assert-fails")
_plant("assert-inverted", "device_assert fails if the condition holds", rewrite("structured", written(r"tpk\.assert", """
    %fault_t{n} = "arith.constant"() <{{value = false}}> : () -> i1
    "tpk.assert"(%fault_t{n}) {{message = ""}} : (i1) -> ()""")), "language/control-flow-and-functions/device_assert-i32-*")
_plant("print-removed", "device_print is left out", rewrite("structured", each(r"tpk\.print", lambda operation: "")), "language/programs/print")
_plant("print-decimal", "device_print ignores hex", rewrite("structured", attributes(r"tpk\.print", "hex = true", "hex = false")), "language/programs/print-numbers")
_plant("print-signed", "device_print shows unsigned numbers as signed", rewrite("structured", attributes(r"tpk\.print", "isSigned = array<i32: 0>", "isSigned = array<i32: 1>")), "language/programs/print-numbers")
_plant("print-places", "device_print exchanges the coordinates x and y of the program", rewrite("loops", replaced(r"(llvm\.call @tpk_host_print\((?:%[^,]+, ){5})(%[^,]+), (%[^,]+),", lambda match: f"{match[1]}{match[3]}, {match[2]},")), "language/programs/print-places")
_plant("program-axes", "program_id(0) and program_id(1) are exchanged", rewrite("structured", lambda text: _exchanged_axes(text, "program_id", 0, 1)), "runtime/grids/3x5", "runtime/grids/257x63")
_plant("program-z", "program_id(2) is program_id(1)", rewrite("structured", attributes(r"tpk\.program_id", "axis = 2", "axis = 1")), "runtime/grids/2x3x4")
_plant("programs-axes", "num_programs(0) and num_programs(1) are exchanged", rewrite("structured", lambda text: _exchanged_axes(text, "num_programs", 0, 1)), "runtime/grids/3x5")
_plant("programs-more", "num_programs is one too many", rewrite("structured", written(r"tpk\.num_programs", """
    %fault_p{n} = "tpk.num_programs"() {{axis = 0 : i32}} : () -> i32
    %fault_o{n} = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    {r} = "arith.addi"(%fault_p{n}, %fault_o{n}) : (i32, i32) -> i32""", where="axis = 0")), "language/control-flow-and-functions/program_id-*")
_plant("last-of-chunk", "the last program that a thread runs is skipped", rewrite("loops", lambda text: _one_program_less(text)), "language/atomics/atomic_add_contended-i32-programs", "runtime/grids/1000")
_plant("call-removed", "calls of functions that are not inlined are left out", rewrite("ttir", each(r"tt\.call", lambda operation: "", where=r"-> \(\)")), "language/programs/noinline-effects")



def _any_option(real: Any, self: Any, options: Any) -> Any:
    """Accept unknown options."""
    found = real(self, options)
    for name, value in options.items():
        found.__dict__.setdefault(name, value)
    return found


def _lenient(real: Any, self: Any, options: Any) -> Any:
    """Replace invalid counts."""
    warps = options.get("num_warps", 1)
    return real(self, {**options, "num_warps": warps if warps in (1, 2, 4, 8, 16, 32) else 4})


def _remembered(real: Any, self: Any, options: Any) -> Any:
    """Keep the options of one launch for the next."""
    _REMEMBERED.update(options)
    return real(self, dict(_REMEMBERED))


_REMEMBERED: dict[str, Any] = {}


def _stamped(self: Any, binary: bytes, metadata: Any) -> bytes:
    return binary + str(time.monotonic_ns()).encode()


def _forgetful(self: Any, binary: bytes, metadata: Any) -> bytes:
    for name in ("num_warps", "num_stages"):
        metadata[name] = 1
    return binary


def _host(name: str, sentence: str, apply: Apply, *caught_by: str) -> None:
    """Add a fault in the compiler's interface to Triton."""
    _plant(name, sentence, apply, *(f"registration/{pattern}" for pattern in caught_by))


_host("options-not-in-key", "the cache key does not have the options", method("options", hash=lambda real, self: "options"), "hashes/option-num_warps", "hashes/kernel-fusion")
_host("target-not-in-key", "the cache key does not have the target", both(method("backend", hash=lambda real, self: "faulty"), method("options", hash=lambda real, self: str(self.num_warps))), "hashes/target")
_host("key-of-process", "the cache key differs in every process", method("backend", hash=lambda real, self: f"{real(self)}-{os.getpid()}"), "hashes/backend-in-fresh-process", "hashes/fresh-process")
_host("key-of-object", "the cache key differs for every compiler object", method("backend", hash=lambda real, self: f"{real(self)}-{id(self)}-{time.monotonic_ns()}"), "hashes/backend")
_host("options-lost", "given options are ignored", method("backend", parse_options=lambda real, self, options: real(self, {})), "options/kept-num_warps-8", "options/kept-enable_fp_fusion-False")
_host("options-any", "unknown options are accepted", method("backend", parse_options=_any_option), "options/arguments-ignored", "options/launch-unknown-refused")
_host("options-lenient", "an invalid num_warps is replaced", method("backend", parse_options=_lenient), "options/refused-num_warps-3", "options/launch-bad-refused")
_host("options-stay", "options of one launch become the defaults of the next", method("backend", parse_options=_remembered), "options/defaults-fresh")
_host("stamped", "compiling a kernel again gives a different binary", _last_stage(_stamped), "stages/deterministic")
_host("metadata-options", "the metadata do not have the options that a kernel was compiled with", _last_stage(_forgetful), "stages/metadata-options")
_host("all-targets", "the compiler accepts the targets of all backends", method("backend", supports_target=lambda real, target: True), "coexistence/target-cuda", "coexistence/target-cpu")


def _exchanged_axes(text: str, operation: str, one: int, other: int) -> str:
    axes = {str(one): str(other), str(other): str(one)}

    def change(found: Any) -> None:
        for axis, new in axes.items():
            if f"axis = {axis} " in found.tail:
                found.tail = found.tail.replace(f"axis = {axis} ", f"axis = {new} ")
                return

    return each(rf"tpk\.{operation}", change)(text)


def _one_program_less(text: str) -> str:
    """Shorten the loop over programs by one iteration, unless it has only one."""
    match = re.search(r"^( *)(%\S+) = scf\.for (%\S+) = %begin to %end step (%\S+) iter_args", text, re.MULTILINE)
    if match is None:
        return text
    indent = match[1]
    lines = (
        f"{indent}%fault_one = arith.constant 1 : i64\n"
        f"{indent}%fault_less = arith.subi %end, %fault_one : i64\n"
        f"{indent}%fault_next = arith.addi %begin, %fault_one : i64\n"
        f"{indent}%fault_end = arith.maxsi %fault_less, %fault_next : i64\n"
    )
    return text[: match.start()] + lines + text[match.start() :].replace("%begin to %end", "%begin to %fault_end", 1)

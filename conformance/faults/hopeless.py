"""Backends that can do nothing, and must not come out green: not with any profile, in any level."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.faults.fault import Fault, both, method, rewrite
from triton_porting_kit.conformance.faults.rewriting import written


def _refuses(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("this backend can do nothing")


def _no_device(*_: Any, **__: Any) -> Any:
    raise RuntimeError("there is no device")


_ZERO = """
    %fault_z{n} = "arith.subi"({1}, {1}) : ({T1}, {T1}) -> {T1}"""
ZEROS = rewrite(
    "ttir",
    written(r"tt\.store", _ZERO + '\n"tt.store"({0}, %fault_z{n}) : ({T0}, {T1}) -> ()', where=r": \(\S+, \S*i\d+>?\) ->"),
    written(
        r"tt\.store",
        _ZERO.replace("subi", "subf") + '\n"tt.store"({0}, %fault_z{n}) : ({T0}, {T1}) -> ()',
        where=r": \(\S+, \S*b?f(16|32|64)>?\) ->",
    ),
)

HOPELESS = (
    Fault("refuses-everything", "compiler", "the compiler refuses every kernel", method("backend", pipeline=_refuses), ()),
    Fault("zeros", "compiler", "kernels write zeros", ZEROS, ()),
    Fault(
        "no-device",
        "driver",
        "there is no device",
        both(method("driver", is_available=lambda real, self: False, make_device=_no_device)),
        (),
    ),
)

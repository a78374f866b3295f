"""Checks and conversions of argument values: the reference for the native launch code.

The native code converts values itself. If it must refuse one, it calls the function of this module that refuses the
same value, so that every launcher raises the same error with the same text.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Sequence
from typing import Any

from triton_porting_kit.abi.launching import LAUNCH_ERRORS
from triton_porting_kit.errors import GridError, LaunchError, SignatureError
from triton_porting_kit.launcher.types import Kind, scalar_type
from triton_porting_kit.toolchain import tensors

MAX_GRID = 2**31 - 1


def encode(name: str, type_name: str, value: Any) -> bytes:
    """The bytes of `value` as a parameter of type `type_name`; little endian, as long as the type.

    Pointers are ints, None (NULL) or objects with ``data_ptr()``. Floats are rounded to nearest even, and to infinity
    beyond the range. A NaN keeps its sign and the part of its payload that fits. A boolean is the truth of any int,
    because a kernel may declare an int as ``tl.int1``. Raises `SignatureError`, which names the parameter, for a value
    of the wrong type or out of range.
    """
    scalar = scalar_type(type_name, name)
    if scalar.form is not None:
        number = _double(name, type_name, value)
        if scalar.kind == Kind.FP64:
            return struct.pack("<d", number)
        return round_float(number, scalar.form.exponent, scalar.form.mantissa).to_bytes(scalar.size, "little")
    if scalar.kind == Kind.POINTER:
        integer = _address(name, type_name, value)
    else:
        integer = _integer(name, type_name, value, "an int")
        if scalar.kind == Kind.BOOL:
            integer = int(integer != 0)
    if not scalar.minimum <= integer <= scalar.maximum:
        raise SignatureError(
            f"argument '{name}' ({type_name}): {_digits(integer)} does not fit; the type holds "
            f"{scalar.minimum} to {scalar.maximum}"
        )
    return integer.to_bytes(scalar.size, "little", signed=scalar.minimum < 0)


def round_float(value: float, exponent_bits: int, mantissa_bits: int) -> int:
    """The bits of `value` in a narrower IEEE-like format, rounded once, to nearest even."""
    sign = int(math.copysign(1.0, value) < 0) << (exponent_bits + mantissa_bits)
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    if math.isnan(value):
        payload = int.from_bytes(struct.pack("<d", value), "little") & ((1 << 52) - 1)
        quiet = 1 << (mantissa_bits - 1)
        return sign | infinity | quiet | payload >> (52 - mantissa_bits)
    if math.isinf(value):
        return sign | infinity
    bias = (1 << (exponent_bits - 1)) - 1
    fraction, exponent = math.frexp(abs(value))  # fraction in [0.5, 1)
    exponent = max(exponent - 1, 1 - bias)  # subnormals share the smallest exponent
    steps = round(math.ldexp(abs(value), mantissa_bits - exponent))  # exact scaling; round() is to even
    # A normal number's `steps` include the hidden bit, which adds one to the exponent below; so does a carry.
    bits = steps + ((exponent + bias - 1) << mantissa_bits) if fraction else 0
    return sign | min(bits, infinity)


def _integer(name: str, type_name: str, value: Any, expected: str) -> int:
    try:
        return int(operator.index(value))
    except TypeError:
        raise _mismatch(name, type_name, expected, value) from None


def _address(name: str, type_name: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value)
    data_ptr = getattr(value, "data_ptr", None)
    if data_ptr is None:
        raise _mismatch(name, type_name, "an address, None or an object with data_ptr()", value)
    check_tensor(name, type_name, value)
    address = data_ptr()
    if not isinstance(address, int):
        raise SignatureError(
            f"argument '{name}' ({type_name}): data_ptr() of a {type(value).__name__} must return an int, "
            f"returned {_given(address)}"
        )
    return int(address)


def check_tensor(name: str, type_name: str, value: Any, on_host: bool = False) -> None:
    """Raise `SignatureError` for a torch tensor whose elements are not what is stored at its address, or `on_host` for
    one whose address is that of another device.
    """
    if reason := tensors.refusal(value) or (tensors.elsewhere(value) if on_host else None):
        raise SignatureError(f"argument '{name}' ({type_name}): {reason}")


def _double(name: str, type_name: str, value: Any) -> float:
    # float() accepts strings and buffers, but Triton does not.
    if not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        raise _mismatch(name, type_name, "a float", value)
    try:
        return float(value)
    except TypeError:
        raise _mismatch(name, type_name, "a float", value) from None
    except OverflowError:
        raise SignatureError(
            f"argument '{name}' ({type_name}): {_digits(value)} is too large for a float"
        ) from None


def tuple_members(name: str, count: int, value: Any) -> Sequence[Any]:
    """The `count` members of the tuple argument `name`. Raises `SignatureError` if it has another number."""
    if not isinstance(value, tuple | list):
        raise SignatureError(f"argument '{name}': expected a tuple of {count}, got {_given(value)}")
    if len(value) != count:
        raise SignatureError(f"argument '{name}': expected a tuple of {count}, got one of {len(value)}")
    return value


def descriptor_fields(name: str, type_name: str, count: int, value: Any) -> list[Any]:
    """The `count` values that the host tensor descriptor `value` is passed as, in the order of its parameters.

    Raises `SignatureError` if it is not a tensor descriptor, or has another number of dimensions.
    """
    rank = count // 4
    try:
        base, shape, strides, padding = value.base, value.shape, value.strides, value.padding
    except AttributeError:
        raise _mismatch(name, type_name, "a TensorDescriptor", value) from None
    for label, sizes in (("shape", shape), ("strides", strides)):
        if not isinstance(sizes, tuple | list):
            raise SignatureError(
                f"argument '{name}' ({type_name}): {label} must be a sequence of ints, got {_given(sizes)}"
            )
        if len(sizes) != rank:
            raise SignatureError(
                f"argument '{name}' ({type_name}): expected {rank} dimensions, "
                f"got a descriptor with {len(sizes)} in its {label}"
            )
    flags = [padding == "nan", bool(getattr(value, "round_f32_to_tf32", False))]
    return [base, *shape, *strides, *flags[: count - 1 - 4 * rank], *shape, *strides]


def check_count(names: str, expected: int, required: int, given: int) -> None:
    """Raise `SignatureError` unless `given` is between `required` and `expected`; `names` are those of the
    arguments."""
    if not required <= given <= expected:
        raise SignatureError(f"the kernel takes {expected} arguments ({names}), got {given}")


def check_hidden(names: str, given: Sequence[str]) -> None:
    """Raise `SignatureError` unless the keyword arguments `given` are the hidden arguments `names`."""
    expected = names.split(", ") if names else []
    if missing := [name for name in expected if name not in given]:
        raise SignatureError(
            f"the launch needs the hidden arguments {', '.join(missing)}; give them as keywords"
        )
    if unknown := [name for name in given if name not in expected]:
        raise SignatureError(
            f"the launch has no hidden arguments {', '.join(unknown)}; it takes {names or 'none'}"
        )


def check_leading(given: int) -> None:
    """Raise `SignatureError` if a launch has fewer than the nine arguments that precede the kernel's."""
    if given < 9:
        raise SignatureError(
            "a launch takes gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata, "
            f"launch_enter_hook, launch_exit_hook and the kernel's arguments; got {given} arguments"
        )


def check_handle(name: str, value: Any) -> int:
    """The 64-bit handle (`name` is ``stream`` or ``function``) as an int. Raises `SignatureError`."""
    handle = _integer(name, "handle", value, "an int")
    if not 0 <= handle < 2**64:
        raise SignatureError(f"argument '{name}' (handle): {_digits(handle)} does not fit 64 bits")
    return handle


def check_grid(x: Any, y: Any, z: Any) -> tuple[int, int, int]:
    """The grid as three ints. Raises `GridError` if one is not a count between 0 and 2**31 - 1."""
    counts = []
    for axis, value in zip("xyz", (x, y, z), strict=True):
        try:
            count = operator.index(value)
        except TypeError:
            raise GridError(
                f"grid {axis} must be an int, got {_given(value)} in ({_given(x)}, {_given(y)}, {_given(z)})"
            ) from None
        if not 0 <= count <= MAX_GRID:
            raise GridError(
                f"grid {axis} must be between 0 and {MAX_GRID}, got {_digits(count)} "
                f"in ({_given(x)}, {_given(y)}, {_given(z)})"
            )
        counts.append(count)
    if math.prod(counts) >= 2**63:
        raise GridError(f"the grid ({x}, {y}, {z}) has {math.prod(counts)} programs; the most is 2**63 - 1")
    return counts[0], counts[1], counts[2]


def refuse_launch(code: int, message: str) -> None:
    """Raise the error that a device's launch entry reported by `code` and `message`."""
    error = LAUNCH_ERRORS.get(code, LaunchError)
    raise error(message or f"the device refused the launch with code {code} and gave no reason")


def _mismatch(name: str, type_name: str, expected: str, value: Any) -> SignatureError:
    return SignatureError(f"argument '{name}' ({type_name}): expected {expected}, got {_given(value)}")


def _given(value: Any) -> str:
    """A value for an error message: plain numbers and strings in full, others by type."""
    if value is None:
        return "None"
    if type(value) is int:
        return f"int {_digits(value)}"
    if type(value) in (bool, float, str):
        return f"{type(value).__name__} {repr(value)[:80]}"
    return type(value).__name__


def _digits(value: int) -> str:
    value = int(value)
    return str(value) if value.bit_length() <= 128 else f"an int of {value.bit_length()} bits"

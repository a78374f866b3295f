"""Triton finds the backend: its entry point, its modules, one compiler and one driver with the required interface."""

from __future__ import annotations

import importlib
import inspect
import json
from functools import partial
from typing import Any

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.registration.support import (
    backend_of,
    entry_points,
    registered,
    target_of,
)
from triton_porting_kit.toolchain import compat

CHECKS = Checks("registration/discovery")

_STAGE = "imported"


@CHECKS.check("registered", "Triton has found the backend under its name.", compiles=True)
def _registered(context: Context) -> None:
    from triton.backends import backends

    context.expect(
        context.session.backend in backends, "the name is known", str(sorted(backends)), stage=_STAGE
    )


@CHECKS.check(
    "entry-point",
    "One package registers the backend's name under the entry points of triton.backends.",
    compiles=True,
)
def _entry_point(context: Context) -> None:
    found = entry_points(context.session.backend)
    places = {point.value for point in found}
    context.expect(
        len(places) == 1, "there is one entry point of the name", str(places or "none"), stage=_STAGE
    )


def _modules(context: Context, name: str) -> Any:
    (point,) = {point.value for point in entry_points(context.session.backend)}
    return importlib.import_module(f"{point}.{name}")


def _concrete(module: Any, base: type) -> list[type]:
    members = [value for _, value in inspect.getmembers(module, inspect.isclass)]
    return [value for value in members if issubclass(value, base) and not inspect.isabstract(value)]


def _one_class(context: Context, name: str) -> None:
    from triton.backends.compiler import BaseBackend
    from triton.backends.driver import DriverBase

    base = {"compiler": BaseBackend, "driver": DriverBase}[name]
    found = _concrete(_modules(context, name), base)
    context.expect(
        len(found) == 1,
        f"the module {name} has one concrete class of {base.__name__}",
        str(found),
        stage=_STAGE,
    )
    chosen = getattr(registered(context), name)
    context.expect(found[0] is chosen, "it is the one that Triton has found", f"{found[0]}, not {chosen}")


for _name in ("compiler", "driver"):
    CHECKS.add(
        f"{_name}-module",
        f"The package has a module {_name} with exactly one class that Triton can use.",
        partial(_one_class, name=_name),
        compiles=True,
    )


# --- the compiler ----------------------------------------------------------------------------------------


@CHECKS.check(
    "compiler-for-target",
    "Triton's choice for the backend's target is the backend's compiler.",
    compiles=True,
)
def _compiler_for_target(context: Context) -> None:
    made, target = backend_of(context), target_of(context)
    context.expect(
        type(made) is registered(context).compiler, "it is of the registered class", str(type(made))
    )
    context.expect(made.target == target, "it is for the target that it was made for", f"{made.target}")


@CHECKS.check(
    "one-compiler-for-target",
    "No other registered backend accepts the target; otherwise Triton cannot choose.",
    compiles=True,
)
def _one_compiler(context: Context) -> None:
    from triton.backends import backends

    target = target_of(context)
    found = sorted(name for name, item in backends.items() if item.compiler.supports_target(target))
    context.expect(found == [context.session.backend], f"one takes {target}", str(found))


@CHECKS.check("binary-extension", "The compiler names the artefact that the driver loads.", compiles=True)
def _binary_extension(context: Context) -> None:
    found = getattr(backend_of(context), "binary_ext", None)
    context.expect(isinstance(found, str) and bool(found), "binary_ext is a string", repr(found))


def _method(context: Context, name: str) -> None:
    context.expect(callable(getattr(backend_of(context), name, None)), f"{name} can be called")


_METHODS = (
    "hash",
    "parse_options",
    "add_stages",
    "load_dialects",
    "get_module_map",
    "get_codegen_implementation",
    "pack_metadata",
)
for _name in _METHODS:
    CHECKS.add(
        f"compiler-has-{_name.replace('_', '-')}",
        f"The compiler has `{_name}`, which Triton calls.",
        partial(_method, name=_name),
        compiles=True,
    )


@CHECKS.check("module-map", "The compiler's map of modules names modules.", compiles=True)
def _module_map(context: Context) -> None:
    found = backend_of(context).get_module_map()
    wrong = {name: item for name, item in found.items() if not inspect.ismodule(item)}
    context.expect(not wrong, "every value is a module", str(wrong))


@CHECKS.check(
    "minimum-dot-shape", "The compiler reports the minimum size of the operands of a product.", compiles=True
)
def _minimum_dot(context: Context) -> None:
    import triton.language as tl

    made = backend_of(context)
    functions = made.get_codegen_implementation(made.parse_options({}))
    operand = tl.block_type(tl.float16, [16, 16])
    found = functions["min_dot_size"](operand, operand)
    good = len(found) == 3 and all(isinstance(size, int) and size > 0 for size in found)
    context.expect(good, "min_dot_size gives three positive ints", repr(found))


# --- the driver ------------------------------------------------------------------------------------------


@CHECKS.check("driver-active", "The driver reports that it is active, and Triton has made it the active one.")
def _driver_active(context: Context) -> None:
    chosen = registered(context).driver
    context.expect(chosen.is_active() is True, "is_active() is True", repr(chosen.is_active()))
    context.expect(
        type(context.driver) is chosen, "the active driver is of its class", str(type(context.driver))
    )


@CHECKS.check("target", "The driver's target has a backend's name, an architecture and the size of a warp.")
def _target(context: Context) -> None:
    from triton.backends.compiler import GPUTarget

    target = target_of(context)
    context.expect(isinstance(target, GPUTarget), "it is a GPUTarget", repr(target))
    context.expect(
        isinstance(target.backend, str) and bool(target.backend), "it names a backend", repr(target)
    )
    context.expect(
        isinstance(target.arch, int | str) and bool(target.arch), "it has an architecture", repr(target)
    )
    context.expect(
        isinstance(target.warp_size, int) and target.warp_size > 0, "a warp has a size", repr(target)
    )


@CHECKS.check("target-stable", "The driver gives the same target every time.")
def _target_stable(context: Context) -> None:
    first, second = target_of(context), target_of(context)
    context.expect(first == second and hash(first) == hash(second), "two are equal", f"{first} and {second}")


@CHECKS.check("target-stored", "The target survives being stored in the cache's metadata.", compiles=True)
def _target_stored(context: Context) -> None:
    target = target_of(context)
    again = type(target)(**json.loads(json.dumps(vars(target))))
    context.expect(again == target, "it comes back from JSON as it was", f"{again}, not {target}")


@CHECKS.check("device", "The driver has a current device, which can be made current again.")
def _device(context: Context) -> None:
    device = context.driver.get_current_device()
    context.expect(isinstance(device, int) and device >= 0, "it is a number", repr(device))
    context.driver.set_current_device(device)
    context.expect(context.driver.get_current_device() == device, "it is current again")


@CHECKS.check("stream", "The driver has a current stream for its device.")
def _stream(context: Context) -> None:
    stream = context.driver.get_current_stream(context.driver.get_current_device())
    context.expect(isinstance(stream, int) and stream >= 0, "it is a handle", repr(stream))


@CHECKS.check("loader", "The driver's loader has the functions that Triton calls.")
def _loader(context: Context) -> None:
    names = ["load_binary", "get_device_properties", *(["unload_module"] if compat.unloads_modules() else [])]
    lacking = [name for name in names if not callable(getattr(context.driver.utils, name, None))]
    context.expect(not lacking, f"driver.utils has {', '.join(names)}", f"it lacks {', '.join(lacking)}")


@CHECKS.check("shared-memory", "The driver reports how much on-chip memory a program may use.")
def _shared_memory(context: Context) -> None:
    found = context.driver.utils.get_device_properties(context.driver.get_current_device())
    value = found.get("max_shared_mem")
    context.expect(isinstance(value, int) and value > 0, "max_shared_mem is a positive int", repr(value))


@CHECKS.check("launcher", "The driver makes launchers.")
def _launcher(context: Context) -> None:
    context.expect(callable(getattr(context.driver, "launcher_cls", None)), "launcher_cls can be called")


@CHECKS.check("benchmarker", "The driver has a function that measures how long calls take.")
def _benchmarker(context: Context) -> None:
    measure = context.driver.get_benchmarker()
    found = measure(lambda: None, quantiles=[0.5])
    value = found[0] if isinstance(found, list | tuple) else found
    context.expect(isinstance(value, float) and value >= 0, "it gives milliseconds", repr(found))


_TYPES = (
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "u1",
    "u8",
    "u16",
    "u32",
    "u64",
    "fp16",
    "bf16",
    "fp32",
    "fp64",
    "*fp32",
    "*i8",
)


def _cpp_type(context: Context, name: str) -> None:
    found = context.driver.map_python_to_cpp_type(name)
    context.expect(isinstance(found, str) and bool(found), "it is a string", repr(found))
    if name.startswith("*"):
        return
    bits = int("".join(filter(str.isdigit, name)))
    signed = name.startswith("i") and bits > 1
    if signed or (name.startswith("u") and bits > 1):
        wanted = f"{'' if signed else 'u'}int{bits}_t"
        context.expect(found == wanted, f"it is {wanted}", found)


for _name in _TYPES:
    CHECKS.add(
        f"cpp-type-{_name.replace('*', 'pointer-')}",
        f"The driver has a C++ type for parameters of {_name}.",
        partial(_cpp_type, name=_name),
    )

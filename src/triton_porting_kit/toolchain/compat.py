"""Triton's internals that differ by release or are not a public interface. Only this module uses them."""

from __future__ import annotations

import dataclasses
import functools
import gc
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import triton
from triton._C.libtriton import ir as triton_ir
from triton._C.libtriton import passes as triton_passes

from triton_porting_kit.errors import CompilationError, ResourceError, ToolchainError

_P = ParamSpec("_P")
_R = TypeVar("_R")

# --- releases ----------------------------------------------------------------------------------------

TRIED = ((3, 6), (3, 7), (3, 8), (3, 9))
"""The releases of Triton that the tests run on, oldest first."""


class UntriedReleaseWarning(UserWarning):
    """The kit was not tested with the installed release of Triton."""


def release() -> tuple[int, int]:
    """Triton's major and minor release number."""
    found = re.match(r"(\d+)\.(\d+)", triton.__version__)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _tried() -> str:
    (first, *_, last) = (".".join(map(str, numbers)) for numbers in TRIED)
    return f"{first} to {last}"


def check_release() -> None:
    """Warn, once, of an untested release. Raises `ToolchainError` for one that is too old."""
    if release() < TRIED[0]:
        oldest = ".".join(map(str, TRIED[0]))
        raise ToolchainError(
            f"Triton {triton.__version__} is too old: the kit needs {oldest} or later; "
            f"run `pip install 'triton>={oldest}'`"
        )
    if release() not in TRIED:
        _warn_of_untried(triton.__version__)


@functools.cache
def _warn_of_untried(version: str) -> None:
    warnings.warn(
        f"the kit was not tried with Triton {version}, only with {_tried()}",
        UntriedReleaseWarning,
        stacklevel=4,
    )


def _internal(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise an error of one sentence if an untested release has other internals."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (ImportError, AttributeError, TypeError) as error:
            if release() in TRIED:
                raise
            raise ToolchainError(
                f"Triton {triton.__version__} is not what {function.__name__}() expects ({error}); "
                f"install a release that was tried, {_tried()}"
            ) from error

    return call


def reads_default_backend() -> bool:
    """Whether Triton itself reads ``TRITON_DEFAULT_BACKEND``; otherwise only the kit's drivers do."""
    return release() >= (3, 7)


def unloads_modules() -> bool:
    """Whether Triton unloads the module of a kernel that is not referenced any more, and then calls a hook."""
    return release() >= (3, 8)


@functools.cache
def descriptor_flags() -> tuple[str, ...]:
    """The flags (i1) of a host tensor descriptor, which are passed between its strides and its shape as i32."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    fields = {field.name for field in dataclasses.fields(TensorDescriptor)}
    return ("padding", *(["round_f32_to_tf32"] if "round_f32_to_tf32" in fields else []))


# --- modules and passes ------------------------------------------------------------------------------

_MARK = "llvm.data_layout"


@_internal
def generic_text(module: Any) -> str:
    """A Triton module as MLIR text in generic form, with locations, that upstream MLIR parses.

    Triton's Python interface prints only the pretty form. MLIR prints generically what does not verify. So the module
    gets an attribute that cannot verify, which is then removed from the text. The attribute stays on the module, which
    must not be run through Triton's passes afterwards.
    """
    builder = triton_ir.builder(module.context)
    module.set_attr(_MARK, builder.get_int32_attr(0))
    text = str(module)
    head, found, tail = text.rpartition(f"{_MARK} = 0 : i32")
    if not found:
        raise ToolchainError("this Triton release does not print unverifiable modules in generic form")
    # The attribute is one of several, or the only one.
    if head.endswith("{") and tail.startswith("}"):
        return head[:-1] + tail[1:]
    return head.removesuffix(", ") + (tail if head.endswith(", ") else tail.removeprefix(", "))


def is_module(artefact: Any) -> bool:
    """Whether an artefact is a Triton module, and not the text of one."""
    return isinstance(artefact, triton_ir.module)


@dataclasses.dataclass(frozen=True)
class Contents:
    """The contents of a Triton module that determine which passes have something to do."""

    operations: frozenset[str]
    """Names of the operations that occur."""
    has_descriptors: bool
    has_unroll_hints: bool
    """Whether a loop has an unroll factor, or may have one in releases that do not say."""


@_internal
def contents(module: Any) -> Contents:
    """Find the contents of a Triton module."""
    names: set[str] = set()
    loops: list[Any] = []

    def visit(operation: Any) -> None:
        name = operation.get_name()
        names.add(name)
        if name == "scf.for":
            loops.append(operation)

    module.walk(visit)
    # A kernel takes descriptors as arguments, or creates them by operations named after them.
    kernel = module.get_entry_func_name()
    arguments = module.get_function_signature(module.get_function(kernel)) if kernel else ()
    return Contents(
        frozenset(names),
        any("descriptor" in name for name in names) or any("tensordesc" in kind for kind in arguments),
        any(_may_be_unrolled(loop) for loop in loops),
    )


def _may_be_unrolled(loop: Any) -> bool:
    # Triton 3.6 does not expose integer attributes of operations.
    return not hasattr(loop, "get_int_attr") or loop.get_int_attr("tt.loop_unroll_factor") is not None


@_internal
def run_passes(module: Any, names: Iterable[str]) -> None:
    """Run Triton passes on a Triton module in place.

    A pass is named by its group and name in libtriton, such as ``common.cse`` or ``ttir.combine``. Raises
    `ToolchainError` for a pass that this release lacks, unless its purpose is gone, too.
    """
    manager = triton_ir.pass_manager(module.context)
    manager.enable_debug()  # enables MLIR_ENABLE_DUMP and MLIR_ENABLE_TIMING
    for name in names:
        group, _, short = name.partition(".")
        add = getattr(getattr(triton_passes, group, None), f"add_{short}", None)
        if add is None and name in _OBSOLETE_PASSES:
            continue
        if add is None:
            raise ToolchainError(f"this Triton release has no pass {name}")
        add(manager)
    _run(manager, module)


_OBSOLETE_PASSES = frozenset({"ttir.rewrite_tensor_pointer"})
"""Passes that Triton dropped because they became obsolete: since 3.8, block pointers never reach its IR."""


def _run(manager: Any, module: Any) -> None:
    try:
        manager.run(module, "make_ttir")
    except TypeError:  # older releases do not take the name of the stage
        manager.run(module)


# --- compile options ---------------------------------------------------------------------------------


@functools.cache
@_internal
def option_defaults() -> Mapping[str, Any]:
    """Every compile option of Triton's own backends with its default, because the front end may read it."""
    from triton.backends.amd.compiler import HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    defaults: dict[str, Any] = {}
    for options in (HIPOptions, CUDAOptions):
        for field in dataclasses.fields(options):
            has_default = field.default is not dataclasses.MISSING
            defaults[field.name] = field.default if has_default else None
    # Those backends compute these after construction.
    computed = {"extern_libs": (), "debug": False, "num_warps": 4, "num_ctas": 1}
    return defaults | computed | {"max_num_imprecise_acc_default": 0}


@_internal
def fp_fusion(requested: bool | None) -> bool:
    """Whether multiplications and additions may be fused: the option if given, else Triton's settings."""
    from triton import knobs

    language = knobs.language
    if getattr(language, "force_disable_fp_fusion", False):
        return False
    if requested is not None:
        return bool(requested)
    return bool(getattr(language, "default_fp_fusion", True))


def is_gluon(language: Any) -> bool:
    """Whether a kernel was written in Gluon, Triton's layout-level language for GPUs."""
    return getattr(language, "name", "") == "GLUON"


def unsupported_language(backend: str) -> CompilationError:
    return CompilationError(
        f"backend {backend} compiles Triton kernels, not Gluon ones",
        remedy="write the kernel with @triton.jit",
    )


def out_of_resources(required: int, limit: int, name: str, remedy: str) -> ResourceError:
    """The error of a kernel that needs more than the chip has. It is also of Triton's own type."""
    return _resource_error()(required, limit, name, remedy)  # type: ignore[no-any-return]


@functools.cache
@_internal
def _resource_error() -> Any:
    from triton.runtime.errors import OutOfResources as TritonsOutOfResources

    class OutOfResources(ResourceError, TritonsOutOfResources):  # type: ignore[misc]
        """The chip has less of a resource than the kernel needs."""

        __str__ = Exception.__str__

        def __reduce__(self) -> Any:
            return (out_of_resources, (self.required, self.limit, self.name, self.remedy))

    return OutOfResources


# --- compiling without running --------------------------------------------------------------------------


@_internal
def front_end_module(
    kernel: Any,
    signature: Mapping[str, Any],
    constants: Mapping[Any, Any],
    attributes: Mapping[tuple[int, ...], Any],
    backend: Any,
    options: Any,
) -> Any:
    """The Triton module of a kernel, before any pass, from types by argument name (``constexpr`` for constants).

    Constants are given by name, or within a tuple argument by position, as a tuple. Raises Triton's own
    ``CompilationError``.
    """
    from triton.compiler import ASTSource

    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    return source.make_ir(backend.target, options, functions, backend.get_module_map(), context)


def definition_line(kernel: Any) -> int:
    """The line of a kernel's ``def``, which Triton's own error messages count from."""
    line = getattr(kernel, "def_file_line_number", None)
    if line is None:  # releases before 3.8 only have the line of the first decorator
        decorators = (i for i, text in enumerate(kernel.raw_src) if re.match(r"\s*def\s", text))
        line = kernel.starting_line_number + next(decorators, 0)
    return int(line)


@_internal
def backend_stages(backend: Any, options: Any) -> dict[str, Any]:
    """The stages of any backend, in order: functions of an artefact and the metadata, by name."""
    from triton.backends.compiler import Language

    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    return stages


# --- the compile cache -------------------------------------------------------------------------------


@_internal
def cache_root() -> Path:
    """The folder of Triton's compile cache."""
    from triton import knobs

    return Path(knobs.cache.dir)


@_internal
def kernel_cache_folder(key: str) -> Path | None:
    """The folder of the artefacts of the kernel with this hash; None if they are not in a folder."""
    from triton import knobs

    return _kernel_cache_folder(key, knobs.cache.dir, knobs.cache.manager_class)


@functools.lru_cache(maxsize=16)
def _kernel_cache_folder(key: str, *_settings: Any) -> Path | None:
    # A manager creates the folder, which takes as long as reading from it.
    from triton.runtime.cache import get_cache_manager

    manager = get_cache_manager(key)
    # A remote cache copies what it fetches to files.
    folder = getattr(getattr(manager, "_file_cache_manager", manager), "cache_dir", None)
    return None if folder is None else Path(folder)


@_internal
def artefact_folder(metadata: Mapping[str, Any], name: str) -> Path | None:
    """The folder of an artefact from the compilation with this metadata; None if Triton did not write it."""
    from triton import knobs

    known = "hash" in metadata and (name == "source" or not knobs.compilation.store_binary_only)
    return kernel_cache_folder(metadata["hash"]) if known else None


def forget_cache_folders() -> None:
    """Forget where kernels are cached, so that it is determined again."""
    _kernel_cache_folder.cache_clear()


# --- the caches of a function ------------------------------------------------------------------------


@functools.cache
@_internal
def share_kernel_caches() -> None:
    """Let a function's compiled kernels be found under any name of the device, if its driver `has_one_device`.

    Triton stores them by the driver's name of the current device, which is a number, as torch numbers GPUs. torch calls
    the only CPU "cpu", and programs look for kernels under that name, or under 0. For functions that were decorated
    earlier, only the driver's number works.
    """
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    by_triton = JITFunction.create_binder

    def create_binder(self: Any) -> Any:
        if getattr(driver.active, "has_one_device", False):
            target = driver.active.get_current_target()
            # Each entry holds the target that it is for.
            for caches in self.device_caches.values():
                if target in caches:
                    return caches
        return by_triton(self)

    JITFunction.create_binder = create_binder


# --- hooks -------------------------------------------------------------------------------------------


@contextmanager
def runtime_hooks(**hooks: Callable[..., Any]) -> Iterator[None]:
    """A context in which Triton calls these hooks, by their names in ``knobs.runtime``, instead of others of that
    name."""
    from triton import knobs

    before = {name: getattr(knobs.runtime, name) for name in hooks}
    try:
        for name, hook in hooks.items():
            setattr(knobs.runtime, name, hook)
        yield
    finally:
        for name, hook in before.items():
            setattr(knobs.runtime, name, hook)


@contextmanager
def watched_compilations() -> Iterator[list[tuple[str, bool]]]:
    """A context whose list gets the name of each kernel that Triton compiles, and whether it was in the cache."""
    from triton import knobs

    seen: list[tuple[str, bool]] = []

    def listen(*, src: Any, cache_hit: bool, **_: Any) -> None:
        seen.append((str(src.name), bool(cache_hit)))

    before = knobs.compilation.listener
    knobs.compilation.listener = listen
    try:
        yield seen
    finally:
        knobs.compilation.listener = before


# --- loaded kernels ----------------------------------------------------------------------------------


@_internal
def forget_loaded_kernels() -> None:
    """Make Triton load every compiled kernel of this process again at its next launch.

    Call it after a reset of the device, which invalidates Triton's handles of modules and functions.
    """
    from triton.compiler.compiler import CompiledKernel

    for kernel in [found for found in gc.get_objects() if type(found) is CompiledKernel]:
        kernel.module = kernel.function = kernel._run = None


@_internal
def compile_again(source: Any, metadata: Any, **options: Any) -> Any:
    """Triton's compiled kernel of a source, with the target and the options of other `metadata`, and with `options`."""
    import triton

    known = {name: getattr(metadata, name) for name in metadata._fields}
    return triton.compile(source, target=metadata.target, options=known | options)


@_internal
def loaded_function(kernel: Any) -> int:
    """The driver's function of a compiled kernel, which is loaded onto the current device if necessary."""
    kernel._init_handles()
    return int(kernel.function)


@_internal
def scratch_allocator(kind: str) -> Callable[[int, int, int | None], Any] | None:
    """The user's allocator of the ``global`` or ``profile`` scratch of launches; None if not set.

    It is called with bytes, alignment and stream.
    """
    from triton.runtime import _allocation

    holder = _allocation._allocator if kind == "global" else _allocation._profile_allocator
    found = holder.get()
    return None if isinstance(found, _allocation.NullAllocator) else found


@_internal
def wrap_launchers(wrap: Callable[[Any, Any], Any]) -> None:
    """From now on, launch every kernel that is loaded by ``wrap(kernel, launcher)``; once per process.

    `kernel` is Triton's compiled kernel, and `launcher` what its driver created to launch it.
    """
    from triton.compiler.compiler import CompiledKernel

    by_triton = CompiledKernel._init_handles

    def init_handles(self: Any) -> None:
        before = self._run
        by_triton(self)
        if self._run is not before:
            self._run = wrap(self, self._run)

    CompiledKernel._init_handles = init_handles


# --- override files ----------------------------------------------------------------------------------

OverrideReader = Callable[[Path, Callable[[], Any]], Any]
"""Returns the artefact of an override file: ``reader(path, by_triton)``, where `by_triton` reads it as Triton would."""

MODULE_STAGES = ("ttir", "ttgir")
"""The stages whose artefact is a Triton module, which Triton's own reader creates from a file."""

_expected = threading.local()


def expect_override(stage: str, reader: OverrideReader) -> None:
    """Let `reader` read the file that overrides `stage`, if Triton finds one on this thread.

    Triton looks for it (``TRITON_KERNEL_OVERRIDE``, the option ``ir_override``) right after it has run the stage. Its
    own reader only knows the stages of its own backends and returns None for others.
    """
    _expected.override = (stage, reader)
    _install_override_reader()


@functools.cache
def _install_override_reader() -> None:
    from triton.compiler import compiler

    by_triton = compiler.parse

    def parse(full_name: str, ext: str, context: Any) -> Any:
        stage, reader = getattr(_expected, "override", (None, None))
        if reader is None or stage != ext:
            return by_triton(full_name, ext, context)
        return reader(Path(full_name), lambda: by_triton(full_name, ext, context))

    compiler.parse = parse


class _StoredBinary(str):
    """The name of a backend's binary, which Triton stores under any setting.

    With ``TRITON_STORE_BINARY_ONLY``, Triton keeps an artefact only if its name is in ("cubin", "hsaco", "json"), and
    then does not find the binary of any other backend. So this string also equals one of those.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other[:] in (self[:], "hsaco")  # slices are plain strings

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def binary_stage_name(name: str) -> str:
    """The name under which the stage that makes the binary is registered with Triton."""
    return _StoredBinary(name)


@_internal
def read_ttir(path: Path) -> Any:
    """The Triton module in a file. Raises RuntimeError if it does not parse."""
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    module = triton_ir.parse_mlir_module(str(path), context)
    module.context = context
    return module


def inspect_stages(backend: Any, stages: Any, options: Any, language: Any) -> None:
    """Let the user's ``knobs.runtime.add_stages_inspection_hook`` inspect and change the stages."""
    from triton import knobs

    hook = getattr(knobs.runtime, "add_stages_inspection_hook", None)
    if hook is not None:
        hook(backend, stages, options, language, None)

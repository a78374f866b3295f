"""The stages of the compiler, their artefacts, and the metadata of a kernel that Triton needs."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import triton

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.registration.support import (
    SUM,
    backend_of,
    environment,
    own_cache,
    target_of,
    warm,
)
from triton_porting_kit.toolchain import compat

CHECKS = Checks("registration/stages", compiles=True)

KERNELS: dict[str, str] = {
    "empty": "def empty(X, O, n, BLOCK: tl.constexpr):\n    pass\n",
    "scalar": "def scalar(X, O, n, BLOCK: tl.constexpr):\n    tl.store(O, tl.load(X) + n)\n",
    "sum": SUM,
    "loop": (
        "def loop(X, O, n, BLOCK: tl.constexpr):\n"
        "    total = 0\n    for k in range(n):\n        total += tl.load(X + k)\n    tl.store(O, total)\n"
    ),
    "branch": (
        "def branch(X, O, n, BLOCK: tl.constexpr):\n"
        "    if tl.load(X) > n:\n        tl.store(O, n)\n    else:\n        tl.store(O, -n)\n"
    ),
}


def _compiled(context: Context, source: str = SUM, **options: Any) -> Any:
    x, out = context.empty((100,), "i32"), context.empty((1,), "i32")
    return warm(source, x, out, 100, BLOCK=128, **options)


def _stages(context: Context) -> dict[str, Any]:
    backend = backend_of(context)
    return compat.backend_stages(backend, backend.parse_options({}))


@CHECKS.check("first", "The first stage is `ttir`, which follows Triton's front end.")
def _first(context: Context) -> None:
    found = list(_stages(context))
    context.expect(bool(found) and found[0] == "ttir", "it is ttir", str(found))


@CHECKS.check("last", "The last stage produces the binary that the compiler names.")
def _last(context: Context) -> None:
    found, binary = list(_stages(context)), backend_of(context).binary_ext
    context.expect(found[-1] == binary, f"it is {binary}", str(found))


@CHECKS.check("callable", "Every stage is a function.")
def _callable(context: Context) -> None:
    wrong = [name for name, stage in _stages(context).items() if not callable(stage)]
    context.expect(not wrong, "all can be called", str(wrong))


@CHECKS.check(
    "repeatable",
    "Asking for the stages again, of one object or another, gives the same names in the same order.",
)
def _repeatable(context: Context) -> None:
    backend = backend_of(context)
    options = backend.parse_options({})
    found = [list(compat.backend_stages(backend, options)) for _ in range(3)] + [list(_stages(context))]
    context.expect(all(names == found[0] for names in found), "four lists are equal", str(found))


@CHECKS.check("names", "The names of stages are valid in file names.")
def _names(context: Context) -> None:
    wrong = [name for name in _stages(context) if not str(name).isidentifier()]
    context.expect(not wrong, "they are letters, digits and underscores", str(wrong))


# --- artefacts -------------------------------------------------------------------------------------------


def _artefacts(context: Context, kernel: str) -> None:
    compiled, names, binary = (
        _compiled(context, KERNELS[kernel]),
        list(_stages(context)),
        backend_of(context).binary_ext,
    )
    lacking = [name for name in names if name not in compiled.asm]
    context.expect(
        not lacking, "every stage has left one", f"none of {lacking}; there are {list(compiled.asm)}"
    )
    for name in names:
        content = compiled.asm[name]
        wanted = bytes if name == binary else str
        context.expect(isinstance(content, wanted), f"{name} is {wanted.__name__}", type(content).__name__)
        context.expect(len(content) > 0, f"{name} is not empty")
        if isinstance(content, str):
            context.expect("\0" not in content and content.strip() != "", f"{name} can be printed")


for _kernel in KERNELS:
    CHECKS.add(
        f"artefacts-{_kernel}",
        f"Every stage produces a non-empty artefact of a kernel ({_kernel}): text, and a binary at the end.",
        partial(_artefacts, kernel=_kernel),
        elements=128,
    )


@CHECKS.check(
    "ttir", "The artefact of the first stage is Triton's IR, and has the kernel's name.", elements=128
)
def _ttir(context: Context) -> None:
    text = _compiled(context).asm["ttir"]
    context.expect("tt.func" in text and "total" in text, "it has a function of that name", text[:300])


@CHECKS.check("unknown-artefact", "An unknown artefact raises KeyError.", elements=128)
def _unknown_artefact(context: Context) -> None:
    compiled = _compiled(context)
    context.refuses("asm['no_such_stage']", lambda: compiled.asm["no_such_stage"], KeyError)


@CHECKS.check("binary", "The kernel's binary is the artefact of the last stage.", elements=128)
def _binary(context: Context) -> None:
    compiled = _compiled(context)
    context.expect(compiled.kernel == compiled.asm[backend_of(context).binary_ext], "they are the same bytes")


@CHECKS.check(
    "deterministic", "A kernel that is compiled twice gives the same artefacts, byte by byte.", elements=128
)
def _deterministic(context: Context) -> None:
    found = []
    for _ in range(2):
        with own_cache(context):
            compiled = _compiled(context)
            found.append({name: compiled.asm[name] for name in _stages(context)})
    for name in found[0]:
        context.expect(found[0][name] == found[1][name], f"{name} is the same")


# --- metadata ----------------------------------------------------------------------------------------------


def _number(least: int) -> Any:
    return lambda context, value: isinstance(value, int) and not isinstance(value, bool) and value >= least


_METADATA: dict[str, tuple[str, Any]] = {
    "name": (
        "the name of the function in the binary",
        lambda context, value: isinstance(value, str) and bool(value),
    ),
    "shared": ("bytes of memory on chip", _number(0)),
    "num_warps": ("warps of a program", _number(1)),
    "num_ctas": ("blocks of a cluster", _number(1)),
    "num_stages": ("stages of pipelined loops", _number(0)),
    "warp_size": ("lanes of a warp", _number(1)),
    "target": ("the target", lambda context, value: value == target_of(context)),
    "triton_version": ("Triton's release", lambda context, value: value == triton.__version__),
    "hash": ("the kernel's hash", lambda context, value: isinstance(value, str) and len(value) >= 32),
}


def _metadata(context: Context, name: str) -> None:
    value = getattr(_compiled(context).metadata, name, None)
    context.expect(bool(_METADATA[name][1](context, value)), f"{name} is {_METADATA[name][0]}", repr(value))


for _name, (_what, _test) in _METADATA.items():
    CHECKS.add(
        f"metadata-{_name}",
        f"A kernel's metadata contain `{_name}`: {_what}.",
        partial(_metadata, name=_name),
        elements=128,
    )


@CHECKS.check("metadata-of-kernel", "A compiled kernel has the name and hash of its metadata.", elements=128)
def _of_kernel(context: Context) -> None:
    compiled = _compiled(context)
    context.expect(compiled.name == compiled.metadata.name, "the names are equal", compiled.name)
    context.expect(compiled.hash == compiled.metadata.hash, "the hashes are equal", compiled.hash)


@CHECKS.check(
    "metadata-options", "A kernel's metadata contain the options that it was compiled with.", elements=128
)
def _of_options(context: Context) -> None:
    metadata = _compiled(context, num_warps=2, debug=True).metadata
    context.expect(metadata.num_warps == 2, "num_warps is 2", str(metadata.num_warps))
    context.expect(metadata.debug is True, "debug is on", str(metadata.debug))


@CHECKS.check(
    "loaded",
    "A kernel that was launched has handles of its module and function.",
    compiles=False,
    elements=128,
)
def _loaded(context: Context) -> None:
    from triton_porting_kit.conformance.registration.support import anew

    x, out = context.array(np.arange(100, dtype=np.int32), "i32"), context.empty((1,), "i32")
    compiled = anew(SUM)[(1,)](x, out, 100, BLOCK=128)
    context.compare("the sum", identical(context.read(out), np.array([4950], np.int32)))
    context.expect(compiled.module is not None and compiled.function is not None, "both are there")
    context.expect(
        compiled.n_max_threads >= compiled.metadata.num_warps,
        "the maximum number of threads is at least num_warps",
        str(compiled.n_max_threads),
    )


# --- from IR -----------------------------------------------------------------------------------------------


@CHECKS.check(
    "from-ttir",
    "A file with the artefact of the first stage can be compiled in place of a kernel.",
    compiles=False,
    elements=128,
)
def _from_ttir(context: Context) -> None:
    x, out = context.array(np.arange(100, dtype=np.int32), "i32"), context.empty((1,), "i32")
    text = warm(SUM, x, out, 100, BLOCK=128).asm["ttir"]
    with tempfile.TemporaryDirectory(dir=context.session.scratch or None) as folder:
        path = Path(folder) / "total.ttir"
        path.write_text(text, encoding="utf-8")
        compiled = triton.compile(str(path))
    compiled[(1, 1, 1)](x, out, 100)
    context.compare("the sum", identical(context.read(out), np.array([4950], np.int32)))


@CHECKS.check("dump", "If dumping is enabled, every stage's artefact is written to a file.", elements=128)
def _dump(context: Context) -> None:
    with tempfile.TemporaryDirectory(dir=context.session.scratch or None) as folder, own_cache(context):
        with environment(TRITON_KERNEL_DUMP="1", TRITON_DUMP_DIR=folder):
            _compiled(context)
        found = {path.suffix[1:] for path in Path(folder).rglob("*") if path.is_file()}
        lacking = [name for name in _stages(context) if name not in found]
        context.expect(
            not lacking, "there is a file for each", f"none for {lacking}; there are {sorted(found)}"
        )

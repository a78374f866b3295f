"""The kit's declarations of HIP's interface against HIP's own headers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from standin_library import compiler_command

HEADER = Path(__file__).parents[3] / "driver" / "hip" / "native" / "hip_api.h"
TEXT = HEADER.read_text()
# Where the kit has one array for what are many fields of HIP's, the first of them.
RENAMED = {"textureAndSurfaceLimits": "maxTexture1D"}
CONSTANTS = {
    "kStreamNonBlocking": "hipStreamNonBlocking",
    "kEventDefault": "hipEventDefault",
    "kEventDisableTiming": "hipEventDisableTiming",
}
MARKERS = {
    "kLaunchBufferPointer": "HIP_LAUNCH_PARAM_BUFFER_POINTER",
    "kLaunchBufferSize": "HIP_LAUNCH_PARAM_BUFFER_SIZE",
    "kLaunchEnd": "HIP_LAUNCH_PARAM_END",
}


def fields(struct: str) -> list[str]:
    (body,) = re.findall(rf"struct {struct} {{(.*?)\n}};", TEXT, re.DOTALL)
    return re.findall(r"(\w+)(?:\[\d+\])?;", body)


def enumerators(name: str) -> list[str]:
    (body,) = re.findall(rf"enum {name} : int {{(.*?)\n}};", TEXT, re.DOTALL)
    return re.findall(r"(\w+) =", body)


def same_functions() -> str:
    """Each function, with the kit's types for handles and results taken for HIP's."""
    return """
template <typename T> struct Theirs { using Type = T; };
template <> struct Theirs<kit::hipError_t> { using Type = ::hipError_t; };
template <> struct Theirs<kit::hipStream_t> { using Type = ::hipStream_t; };
template <> struct Theirs<kit::hipEvent_t> { using Type = ::hipEvent_t; };
template <> struct Theirs<kit::hipModule_t> { using Type = ::hipModule_t; };
template <> struct Theirs<kit::hipFunction_t> { using Type = ::hipFunction_t; };
template <> struct Theirs<kit::hipPointerAttribute_t> { using Type = ::hipPointerAttribute_t; };
template <> struct Theirs<kit::hipDeviceProp_tR0600> { using Type = ::hipDeviceProp_tR0600; };
template <typename T> struct Theirs<T *> { using Type = typename Theirs<T>::Type *; };
template <typename R, typename... A> struct Theirs<R(A...)> {
  using Type = typename Theirs<R>::Type(typename Theirs<A>::Type...);
};
namespace tpk::hip::api {
#define SAME(result, name, parameters) \\
  inline constexpr auto same_##name = static_cast<Theirs<result parameters>::Type *>(&::name);
TPK_HIP_FUNCTIONS(SAME)
}
"""


def test_layouts_values_and_functions_are_hip_s(tmp_path: Path) -> None:
    lines = [
        "#include <hip/hip_runtime_api.h>",
        f'#include "{HEADER}"',
        "#include <cstddef>",
        "#include <type_traits>",
        "namespace kit = tpk::hip::api;",
    ]
    for struct in ("hipDeviceProp_tR0600", "hipPointerAttribute_t"):
        lines.append(f"static_assert(sizeof(kit::{struct}) == sizeof(::{struct}));")
        for field in fields(struct):
            place = RENAMED.get(field, field)
            lines.append(
                f"static_assert(offsetof(kit::{struct}, {field}) == offsetof(::{struct}, {place}), "
                f'"{struct}.{field}");'
            )
    for name in ("hipError_t", "hipMemoryType"):
        for value in enumerators(name):
            lines.append(f'static_assert(int(kit::{value}) == int(::{value}), "{value}");')
    lines += [f"static_assert(kit::{ours} == {theirs});" for ours, theirs in CONSTANTS.items()]
    lines.append(
        "bool same() { return " + " && ".join(f"kit::{a} == {b}" for a, b in MARKERS.items()) + "; }"
    )
    assert len(fields("hipDeviceProp_tR0600")) > 80
    assert len(enumerators("hipError_t")) > 30
    source = tmp_path / "same.cpp"
    source.write_text("\n".join([*lines, same_functions()]))
    done = subprocess.run(
        compiler_command("-fsyntax-only", source), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

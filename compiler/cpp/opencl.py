"""What OpenCL C adds around a kernel's programs: the kernel function, and the host's mathematical routines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triton_porting_kit.abi import kernel, launching
from triton_porting_kit.compiler.cpp import names
from triton_porting_kit.compiler.cpp.support import Support
from triton_porting_kit.compiler.cpp.types import CppType

KERNEL_PREFIX = "tpk_"

_FUNCTIONS = re.compile(
    r"a?(?:sin|cos|tan)h?|(?:sin|cos)pi|atan2|cbrt|erfc?|exp(?:2|10|m1)?|fdim|fmod|hypot|lgamma|log(?:2|10|1p|b)?|nextafter|"
    r"pow|rint|tgamma"
)
"""Routines of the host that OpenCL C has as functions of the same names, of floats only."""

_ROUTINE = re.compile(rf"{kernel.MATHEMATICS}(\w+)_(f32|f64)")
_SYMBOL = re.compile(r"^__constant \w+ (\w+)(?:\[\d+\])? = \{?([-\d, ]+)\}?;$", re.MULTILINE)
_ENTRY = re.compile(r"^__kernel void (\w+)\(", re.MULTILINE)


def kernel_name(text: str) -> str:
    """The name of the kernel function of emitted OpenCL C. Raises ValueError if the text has none."""
    found = _ENTRY.search(text)
    if found is None:
        raise ValueError("the text has no kernel function: it is not what the stage opencl writes")
    return found[1]


def symbols(text: str) -> Mapping[str, tuple[int, ...]]:
    """The constants of the kernel ABI in emitted OpenCL C, by their names, such as ``NAME__scratch_bytes``."""
    return {
        name: tuple(int(number) for number in numbers.split(",")) for name, numbers in _SYMBOL.findall(text)
    }


_ASSERTION = int(launching.Code.AssertionFailed)
_FAIL = f"""\
// Writes the first failure of a launch: code, program, element, its tensor's rank and sizes, and the text.
static inline i32 {kernel.FAIL}(
    volatile __global i32 *status, constant_ptr text, u32 x, u32 y, u32 z, u64 element, constant_ptr shape) {{
  if (atomic_cmpxchg(status, 0, {_ASSERTION}) != 0)
    return {_ASSERTION};
  __constant i64 *sizes = (__constant i64 *)shape;
  volatile __global char *copy = (volatile __global char *)(status + {kernel.STATUS_TEXT});
  status[1] = (i32)x;
  status[2] = (i32)y;
  status[3] = (i32)z;
  status[4] = (i32)element;
  status[5] = (i32)(element >> 32);
  for (int i = 0; i <= sizes[0] && i < {kernel.STATUS_TEXT - 6}; ++i)
    status[6 + i] = (i32)sizes[i];
  for (int i = 0; i < {(kernel.STATUS_WORDS - kernel.STATUS_TEXT) * 4 - 1} && (!i || text[i - 1]); ++i)
    copy[i] = text[i];
  return {_ASSERTION};
}}"""


_ROUTINES = {
    kernel.FAIL: _FAIL,
    kernel.WORK_ITEM: f"static inline u64 {kernel.WORK_ITEM}(void) {{ return get_local_id(0); }}",
    kernel.BARRIER: f"static inline void {kernel.BARRIER}(void) "
    "{ barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }",
    kernel.SUB_GROUP_ITEM: f"static inline u64 {kernel.SUB_GROUP_ITEM}(void) "
    "{ return get_sub_group_id() * get_max_sub_group_size() + get_sub_group_local_id(); }",
    kernel.SUB_GROUP_BARRIER: f"static inline void {kernel.SUB_GROUP_BARRIER}(void) "
    "{ sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }",
}


def routine(name: str, pointers: int, support: Support) -> str | None:
    """The definition of a mathematical routine of the host, for operands in frames; None if there is none.

    Frames are read and written as everywhere else in the text, so that no compiler assumes that the accesses differ.
    """
    if name in _ROUTINES:
        return _ROUTINES[name]
    found = _ROUTINE.fullmatch(name)
    if found is None or not _FUNCTIONS.fullmatch(found[1]):
        return None
    type = CppType(found[2], int(found[2][1:]))
    load, store = (support.function(access, type, space="private") for access in ("load", "store"))
    letters = "abcd"[: pointers - 1]
    parameters = ", ".join(f"private_ptr {letter}" for letter in letters)
    values = ", ".join(f"{load}({letter} + i * {type.bits // 8})" for letter in letters)
    return (
        f"static inline void {name}(u64 count, private_ptr result, {parameters}) {{\n"
        f"  for (u64 i = 0; i < count; ++i)\n    {store}(result + i * {type.bits // 8}, {found[1]}({values}));\n}}"
    )


def buffer_name(offset: int) -> str:
    """The name of the buffer whose offset is at this place of the argument block."""
    return f"buffer_{offset}"


@dataclass(frozen=True)
class Shape:
    """What a kernel needs to run: bytes of scratch, how many of them must be zero, and the work-items of a work-group.

    `is_local`: scratch is in local memory. `sub_group` is the number of work-items in a sub-group; 1 if it may be any.
    """

    scratch: int
    cleared: int
    work_items: int = 1
    is_local: bool = False
    sub_group: int = 1


def entry(symbol: str, shape: Shape, body: list[str], pointers: Sequence[int]) -> list[str]:
    """The programs of a kernel as a function, and the kernel function, each of whose work-groups runs a part of them.

    `pointers` are the offsets of the pointers that are buffers.
    """
    buffers = [buffer_name(offset) for offset in pointers]
    passed = "".join(f", {name}" for name in buffers)
    declared = "".join(f",\n    __global char *{name}" for name in buffers)
    programs = f"programs_of_{names.in_ascii(symbol)}"
    kinds = _KINDS | {"scratch": "local_ptr" if shape.is_local else "ptr"}
    parameters = ", ".join(
        f"{kinds.get(name, kinds.get(kind, 'ptr'))} {name}" for name, kind in kernel.PARAMETERS
    )
    space = "__local" if shape.is_local else "__global"
    parameters += ", volatile __global i32 *status" + "".join(f", ptr {name}" for name in buffers)
    return f"""\
static i32 {programs}({parameters}) {{
{chr(10).join(body)}
}}

{_comment(shape)}
{_attribute(shape)}__kernel void {KERNEL_PREFIX}{names.in_ascii(symbol)}(
    __global char *args, {space} char *scratch, i64 begin, i64 end, i32 grid_x, i32 grid_y, i32 grid_z,
    volatile __global i32 *status{declared}) {{
{_own_part(shape)}
  // Of an empty part, too: PoCL 3.1 computes wrong numbers if the barriers in it depend on a condition.
  const i32 code = {programs}(args, own, first, last, grid_x, grid_y, grid_z, status{passed});
  if (code)
    atomic_cmpxchg(status, 0, code);
}}""".splitlines()


def _comment(shape: Shape) -> str:
    one, its = ("work-item", "its own") if shape.work_items == 1 else ("work-group", "its")
    return (
        f"// {one.capitalize()} w of n runs the w-th of n parts of the programs [begin, end), with {its} "
        f"{_stride(shape)} bytes of scratch."
    )


def _attribute(shape: Shape) -> str:
    group = (
        f"__attribute__((reqd_work_group_size({shape.work_items}, 1, 1)))\n" if shape.work_items > 1 else ""
    )
    sub_group = (
        f"__attribute__((intel_reqd_sub_group_size({shape.sub_group})))\n" if shape.sub_group > 1 else ""
    )
    return group + sub_group


def _stride(shape: Shape) -> int:
    return -(-shape.scratch // 64) * 64


def _own_part(shape: Shape) -> str:
    """The statements that find the part of the programs, and the scratch for it."""
    together = shape.work_items > 1
    item, items = ("get_group_id", "get_num_groups") if together else ("get_global_id", "get_global_size")
    if shape.is_local:
        own = "  __local char *own = scratch;"
    else:
        own = f"  __global char *own = scratch + item * {_stride(shape)};"
    begin, step = ("(int)get_local_id(0)", shape.work_items) if together else ("0", 1)
    wait = "\n  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);" if together and shape.cleared else ""
    return f"""\
  const i64 item = (i64){item}(0), items = (i64){items}(0);
  const i64 part = (end - begin) / items, more = (end - begin) % items;
  const i64 first = begin + item * part + (item < more ? item : more);
  const i64 last = first + part + (item < more ? 1 : 0);
{own}
  for (int i = {begin}; i < {shape.cleared}; i += {step})
    own[i] = 0;{wait}"""


_KINDS = {"std::int64_t": "i64", "std::int32_t": "i32"}

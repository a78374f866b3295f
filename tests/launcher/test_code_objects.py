"""Kernels' declared arguments against the packed block: LLVM's own of real kernels, and changed ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import triton_amd_kernels
from hypothesis import given
from hypothesis import strategies as st

from triton_porting_kit.binaries.code_object import Kernel, KernelArgument, read_code_object
from triton_porting_kit.errors import ArgumentMismatch, CodeObjectError
from triton_porting_kit.launcher import ArgLayout, check_kernel_arguments

#: What Triton's lowering appends to every kernel.
HIDDEN = {"global_scratch": "*i8", "profile_scratch": "*i8"}
NAMES = ["product", "scalars", "talking"]


def layout_of(name: str) -> ArgLayout:
    return ArgLayout.from_source(triton_amd_kernels.source(name), HIDDEN)


def kernel_of(name: str, arch: str = "gfx942") -> Kernel:
    return read_code_object(triton_amd_kernels.compiled(name, arch).asm["hsaco"]).kernels[name]


def changed(kernel: Kernel, index: int, **changes: object) -> Kernel:
    """A kernel with one argument changed."""
    arguments = list(kernel.arguments)
    arguments[index] = replace(arguments[index], **changes)  # type: ignore[arg-type]
    return replace(kernel, arguments=tuple(arguments))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_compiled_kernels_take_what_is_packed(name: str, arch: str) -> None:
    added = check_kernel_arguments(layout_of(name), kernel_of(name, arch))
    if name == "talking":
        assert {argument.value_kind for argument in added} >= {
            "hidden_block_count_x",
            "hidden_hostcall_buffer",
        }
    else:
        assert added == ()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_other_signatures_are_refused(name: str, other: str) -> None:
    if name == other:
        check_kernel_arguments(layout_of(name), kernel_of(other))
        return
    with pytest.raises(ArgumentMismatch):
        check_kernel_arguments(layout_of(name), kernel_of(other))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": 12}, "packed as a value of 2 bytes at 24, expected as a value of 2 bytes at 12"),
        ({"size": 4}, "packed as a value of 2 bytes at 24, expected as a value of 4 bytes at 24"),
        ({"value_kind": "global_buffer"}, "packed as a value of 2 bytes at 24, expected as a pointer of 2 bytes at 24"),
    ],
)  # fmt: skip
def test_difference_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(
        ArgumentMismatch, match=f"argument 3 \\('half'\\) of kernel 'scalars': {message}"
    ) as caught:
        check_kernel_arguments(layout_of("scalars"), changed(kernel_of("scalars"), 3, **changes))
    error = caught.value
    assert (error.kernel, error.index, error.argument) == ("scalars", 3, "half")
    assert isinstance(error, CodeObjectError)
    assert "compile it again" in str(error)


def test_pointer_for_a_value() -> None:
    kernel = changed(kernel_of("product"), 0, value_kind="by_value")
    with pytest.raises(
        ArgumentMismatch, match=r"argument 0 .*'a'.* packed as a pointer .* expected as a value"
    ):
        check_kernel_arguments(layout_of("product"), kernel)


def test_too_many_and_too_few() -> None:
    kernel, layout = kernel_of("product"), layout_of("product")
    fewer = replace(kernel, arguments=kernel.arguments[:-1])
    with pytest.raises(
        ArgumentMismatch, match=r"argument 5 .'profile_scratch'.* but not one of the kernel's"
    ):
        check_kernel_arguments(layout, fewer)
    extra = KernelArgument("more", 48, 4, "by_value", None)
    with pytest.raises(ArgumentMismatch, match=r"argument 6 .'more'.* of 4 bytes at 48, but not packed"):
        check_kernel_arguments(layout, replace(kernel, arguments=(*kernel.arguments, extra)))
    unnamed = replace(extra, name=None)
    with pytest.raises(ArgumentMismatch, match=r"argument 6 of kernel 'product'") as caught:
        check_kernel_arguments(layout, replace(kernel, arguments=(*kernel.arguments, unnamed)))
    assert caught.value.argument is None
    with pytest.raises(ArgumentMismatch, match=r"argument 4 of kernel 'product'.*not packed"):
        check_kernel_arguments(ArgLayout.from_source(triton_amd_kernels.source("product")), kernel)


@pytest.mark.parametrize("size", [32, 40, 49, 56, 304])
def test_block_of_another_size(size: int) -> None:
    with pytest.raises(ArgumentMismatch, match=f"has 48 bytes, the kernel wants {size}") as caught:
        check_kernel_arguments(layout_of("product"), replace(kernel_of("product"), kernarg_segment_size=size))
    assert (caught.value.index, caught.value.argument) == (None, None)


@given(index=st.integers(0, 12), offset=st.integers(0, 300))
def test_hidden_arguments_have_their_places(index: int, offset: int) -> None:
    kernel, layout = kernel_of("talking"), layout_of("talking")
    at = len(kernel.explicit_arguments) + index
    if offset == kernel.arguments[at].offset:
        check_kernel_arguments(layout, kernel)
        return
    kind = kernel.arguments[at].value_kind
    with pytest.raises(ArgumentMismatch, match=f"'{kind}'.*not where code objects of version 5") as caught:
        check_kernel_arguments(layout, changed(kernel, at, offset=offset))
    assert caught.value.index == at


def test_hidden_arguments_that_nobody_knows() -> None:
    kernel = kernel_of("talking")
    check_kernel_arguments(layout_of("talking"), changed(kernel, 4, value_kind="hidden_none"))
    with pytest.raises(ArgumentMismatch, match="hidden_future"):
        check_kernel_arguments(layout_of("talking"), changed(kernel, 4, value_kind="hidden_future"))

"""What is said of code objects: nothing of good ones, and of each planted fault what is wrong, with both values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from code_object_kernels import WARPS, product, unused_product
from triton.backends.compiler import GPUTarget

from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.conformance.code_objects import is_judged, judge
from triton_porting_kit.conformance.stages import BINARY
from triton_porting_kit.conformance.status import Status, outcome

ARCH = "gfx942"
KIND = "bf16"


def evidence(kernel: Any, content: bytes | None = None, **changes: Any) -> list[dict[str, Any]]:
    """What is said of a kernel, or of other `content` in its place; `changes`: fields of its metadata."""
    return judge(
        kernel.metadata.name,
        kernel.kernel if content is None else content,
        kernel.metadata.target,
        changes.pop("source", kernel.src),
        kernel.metadata._replace(**changes),
    )


def broken(items: list[dict[str, Any]]) -> str:
    """The messages of the rules that are broken; they fail the check at the stage of binaries."""
    wrong = [item for item in items if item["kind"] == "expectation"]
    assert all(item["stage"] == BINARY and not item["holds"] for item in wrong)
    assert outcome(items) is (Status.FAIL if wrong else Status.PASS)
    return "\n".join(f"{item['what']}: {item['message']}" for item in wrong)


@pytest.mark.parametrize("arch", WARPS)
def test_a_good_code_object_breaks_no_rule(arch: str) -> None:
    items = evidence(product(arch, KIND))
    assert broken(items) == ""
    (item,) = items
    facts = item["code_object"]
    assert facts["arch"] == arch
    assert facts["vgprs"] > 0
    assert facts["sgprs"] > 0
    assert facts["instructions"] > 50
    assert all("bf16" in name for name in facts["matrix"])
    assert sum(facts["matrix"].values()) >= 1


def test_binaries_are_known_by_their_content() -> None:
    hip, cpu = GPUTarget("hip", ARCH, 64), GPUTarget("cpu", "x86_64", 1)
    assert is_judged(product(ARCH, KIND).kernel, cpu)
    assert is_judged(b"no ELF file", hip)
    assert is_judged(b"", GPUTarget("another", "gfx90a:xnack-", 64))
    assert not is_judged(b"\x7fELF" + bytes(60), cpu)
    assert not is_judged(b"PTX", GPUTarget("cuda", 90, 32))


@pytest.mark.parametrize("keep", [0, 3, 19, 63, 400, 3000, -64, -1])
def test_truncated_files_are_found(keep: int) -> None:
    kernel = product(ARCH, KIND)
    text = broken(evidence(kernel, kernel.kernel[:keep]))
    assert "the code object can be read, and its parts agree: product: " in text
    assert "write the complete output of the linker" in text


def test_another_architecture_is_found() -> None:
    other = product("gfx90a", KIND)
    text = broken(evidence(product(ARCH, KIND), other.kernel))
    assert "it is for gfx90a, but the target is gfx942; give the code generator" in text


def test_a_kernel_of_another_name_is_found() -> None:
    kernel = product(ARCH, KIND)
    items = judge("wanted", kernel.kernel, kernel.metadata.target, kernel.src, kernel.metadata)
    assert 'it has the kernels product; set metadata["name"]' in broken(items)


def test_a_scalar_product_is_found() -> None:
    scalar = product(ARCH, KIND, scalar=True).kernel
    text = broken(evidence(product(ARCH, KIND), scalar))
    assert "tl.dot of 32x32 bf16 and 32x32 bf16: gfx942 has matrix instructions on bf16 for it" in text
    assert "the code has none" in text


@pytest.mark.parametrize(
    ("arch", "kind", "instead", "wanted"),
    [
        ("gfx942", "bf16", "fp16", "bf16 for it, but the code has v_mfma_f32"),
        ("gfx942", "fp8e4b8", "fp16", "fp8_fp8 for it, but the code has v_mfma_f32"),
        ("gfx1201", "fp8e5", "fp16", "bf8_bf8 for it, but the code has v_wmma_f32"),
    ],
)
def test_matrix_instructions_of_another_type_are_found(
    arch: str, kind: str, instead: str, wanted: str
) -> None:
    text = broken(evidence(product(arch, kind), product(arch, instead).kernel))
    assert wanted in text


@pytest.mark.parametrize(
    ("arch", "kind", "name"),
    [
        ("gfx90a", "fp64", "v_mfma_f64_"),
        ("gfx942", "fp8e4b8", "v_mfma_f32_"),
        ("gfx942", "i8", "v_mfma_i32_"),
        ("gfx950", "fp8e4nv", "v_mfma_f32_"),
        ("gfx1100", "i8", "v_wmma_i32_"),
        ("gfx1201", "fp8e4nv", "v_wmma_f32_"),
        *([("gfx1250", "fp32", "v_wmma_f32_16x16x4_f32")] if "gfx1250" in WARPS else []),
    ],
)
def test_what_architectures_have_is_used(arch: str, kind: str, name: str) -> None:
    items = evidence(product(arch, kind))
    assert broken(items) == ""
    assert all(found.startswith(name) for found in items[0]["code_object"]["matrix"])


def test_what_an_architecture_lacks_is_not_asked_for() -> None:
    items = evidence(product("gfx1100", "fp64"))
    assert broken(items) == ""
    assert "matrix" not in items[0]["code_object"]


def test_a_product_that_nothing_uses_is_not_asked_for() -> None:
    kernel = unused_product()
    assert "tt.dot" in kernel.asm["source"]
    items = evidence(kernel)
    assert broken(items) == ""
    assert "matrix" not in items[0]["code_object"]


def test_arguments_are_compared_with_the_launcher() -> None:
    kernel = product(ARCH, KIND)
    constants = dict.fromkeys("MNK", 32)
    none = dict.fromkeys("MNK", "constexpr")
    for signature, wanted in (
        ({"A": "*bf16", "B": "*bf16", "O": "*fp32", "n": "i64"}, "argument 3"),
        ({"A": "*bf16", "B": "*bf16", "O": "fp64", "n": "i32"}, "argument 2"),
        ({"A": "*bf16", "B": "*bf16", "O": "i32", "n": "i32"}, "argument 2"),
        ({"A": "*bf16"}, "it takes 6 arguments, but the launcher passes 1 (A) and up to 2"),
        (
            {"A": "*bf16", "B": "*bf16", "O": "*fp32", **dict.fromkeys("nopqr", "i32")},
            "the launcher passes 8",
        ),
    ):
        source = SimpleNamespace(signature={**signature, **none}, constants=constants, name="product")
        text = broken(evidence(kernel, source=source))
        assert "the arguments lie where the launcher puts them" in text
        assert wanted in text


def test_launch_sizes_are_compared_with_the_metadata_note() -> None:
    kernel = product(ARCH, KIND)
    assert "work-groups of 256 threads, but a launch has 8 warps, 512" in broken(
        evidence(kernel, num_warps=8)
    )
    target = GPUTarget("hip", ARCH, 32)
    items = judge("product", kernel.kernel, target, kernel.src, kernel.metadata)
    assert "wavefronts have 64 lanes, but the target's warps have 32" in broken(items)


@pytest.mark.parametrize(
    ("arch", "limit"),
    [("gfx90a", 64), ("gfx942", 64), ("gfx950", 160), *([("gfx1250", 320)] if "gfx1250" in WARPS else [])],
)
def test_too_much_on_chip_memory_is_found(arch: str, limit: int) -> None:
    kernel = product(arch, KIND)
    assert broken(evidence(kernel, shared=limit * 1024)) == ""
    text = broken(evidence(kernel, shared=limit * 1024 + 1))
    assert (
        f"a work-group needs {limit * 1024 + 1} bytes of LDS, but {arch} has {limit * 1024}; use smaller tiles"
        in text
    )


Change = Callable[[bytearray, int], None]
"""Changes a code object, in which the descriptor lies at an offset."""


def _word(at: int, change: Callable[[int], int]) -> Change:
    def apply(data: bytearray, descriptor: int) -> None:
        (word,) = struct.unpack_from("<I", data, descriptor + at)
        struct.pack_into("<I", data, descriptor + at, change(word))

    return apply


def _argument(key: bytes, number: int) -> Change:
    """The first argument's entry of that name in the metadata note, a small integer of MessagePack."""

    def apply(data: bytearray, descriptor: int) -> None:
        place = data.index(bytes([0xA0 + len(key)]) + key, data.index(b".args")) + 1 + len(key)
        data[place] = number

    return apply


def _instructions(data: bytearray, descriptor: int) -> None:
    code = next(iter(read_code_object(bytes(data)).kernels.values())).code
    start = data.index(code)
    data[start + 16 : start + 20] = b"\xff\xff\xff\xff"


def _no_end(data: bytearray, descriptor: int) -> None:
    """Each end of the program (s_endpgm, 0xBF810000) becomes a s_nop."""
    code = next(iter(read_code_object(bytes(data)).kernels.values())).code
    start = data.index(code)
    for at in range(start, start + len(code), 4):
        if data[at : at + 4] == b"\x00\x00\x81\xbf":
            data[at : at + 4] = b"\x00\x00\x80\xbf"


FAULTS: dict[str, tuple[Change, str]] = {
    "an argument of 4 bytes": (_argument(b".size", 4), "a value of 4 bytes|a pointer of 4 bytes"),
    "an argument elsewhere": (_argument(b".offset", 4), "behind one that ends|of 8 bytes at 4"),
    "fewer bytes of arguments": (_word(8, lambda size: size - 8), "bytes of arguments by the metadata"),
    "LDS in the descriptor": (_word(0, lambda size: size + 1024), "1024 by the descriptor"),
    "fewer vector registers": (_word(48, lambda word: word & ~63), "the descriptor allocates 8"),
    "fewer scalar registers": (_word(48, lambda word: word & ~(15 << 6)), "the descriptor allocates 16"),
    "no address of arguments": (_word(56, lambda word: word & ~8), "enable_sgpr_kernarg_segment_ptr is 0"),
    "another entry": (_word(16, lambda offset: offset + 256), "by its descriptor"),
    "reserved bits": (_word(12, lambda word: 1), "reserved bytes"),
    "an unknown instruction": (_instructions, "are none of gfx942, the first at byte 16"),
    "no end": (_no_end, "its code never ends"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    change, wanted = FAULTS[fault]
    kernel = product(ARCH, KIND)
    data = bytearray(kernel.kernel)
    (found,) = read_code_object(kernel.kernel).kernels.values()
    d = found.descriptor
    head = struct.pack(
        "<IIIIq",
        d.group_segment_fixed_size,
        d.private_segment_fixed_size,
        d.kernarg_size,
        0,
        d.kernel_code_entry_byte_offset,
    )
    change(data, data.index(head))
    assert bytes(data) != kernel.kernel
    text = broken(evidence(kernel, bytes(data)))
    assert any(part in text for part in wanted.split("|")), text

"""Each kind of operation, from a kernel of a few lines: what it becomes in the structured form."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice
from ttir_source import ttir_text

from triton_porting_kit.compiler.dialect import verifier
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

FLOATS = {"x": "*fp32", "out": "*fp32", "n": "i32"}
INTS = {"x": "*i32", "out": "*i32", "n": "i32"}


def structured(kernel: Any, signature: dict[str, str], **constexprs: Any) -> str:
    """Text of the structured form, which must be as it is declared and hold no operation of Triton's."""
    module = import_ttir(ttir_text(kernel, signature, **constexprs))
    assert module.operation.verify()
    verifier.verify(module)
    text = str(module)
    assert not re.search(r'"tt\w*\.\w|!tt\.|unrealized_conversion_cast', text)
    return text


def attributes_of(text: str, operation: str) -> list[str]:
    """The attribute dictionaries of an operation's occurrences."""
    return re.findall(rf'"{operation}"\([^)]*\) {{([^}}]*)}}', text)


@triton.jit
def moved_kernel(x, out, n, APART: tl.constexpr):
    i = tl.arange(0, 64)
    places = x + i * i % 64
    total = tl.zeros((64,), tl.int32)
    for _ in range(n):
        total += tl.load(places)
        places += i * i % 2 if APART else n
    tl.store(out + i, total)


@pytest.mark.parametrize(("apart", "carried"), [(False, "i64"), (True, "tensor<64xi64>")])
def test_a_loop_carries_how_far_it_moved_pointers(apart: bool, carried: str) -> None:
    text = structured(moved_kernel, INTS, APART=apart)
    (loop,) = (line for line in text.splitlines() if " = scf.for " in line)
    assert sorted(loop.partition("-> (")[2].partition(")")[0].split(", ")) == sorted(
        [carried, "tensor<64xi32>"]
    )


@triton.jit
def math_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = tl.sqrt_rn(v) + tl.div_rn(v, v + 1) + tl.fma(v, v, v) + tl.erf(v) + tl.rsqrt(v)
    w += tl.clamp(v, -1.0, 1.0) + tl.minimum(v, 1.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + i, tl.where(w > 0, tl.exp2(w), tl.log(w)))


def test_elementwise_math_is_upstream() -> None:
    text = structured(math_kernel, FLOATS, B=64)
    for name in (
        "math.sqrt",
        "arith.divf",
        "math.fma",
        "math.erf",
        "math.rsqrt",
        "arith.minimumf",
        "arith.select",
    ):
        assert name in text
    assert attributes_of(text, "tpk.clampf") == ["propagate_nan = false"]


@triton.jit
def dot_kernel(x, y, out, B: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.trans(tl.load(y + at)), input_precision=PRECISION))


def test_dot_is_matmul_with_its_precision() -> None:
    text = structured(dot_kernel, {"x": "*fp32", "y": "*fp32", "out": "*fp32"}, B=16, PRECISION="ieee")
    assert 'linalg.matmul {tpk.input_precision = "ieee"}' in text
    assert "linalg.transpose" in text
    text = structured(dot_kernel, {"x": "*i8", "y": "*i8", "out": "*i32"}, B=32, PRECISION="tf32")
    assert re.search(r"linalg.matmul .*tensor<32x32xi8>.* -> tensor<32x32xi32>", text)


def test_operands_of_a_product_may_differ() -> None:
    types = {"x": "*fp8e4nv", "y": "*fp8e5", "out": "*fp32"}
    text = structured(dot_kernel, types, B=32, PRECISION="ieee")
    assert re.search(r"linalg.matmul .*tensor<32x32xf8E4M3FN>, tensor<32x32xf8E5M2>\) outs", text)


@triton.jit
def scaled_dot_kernel(x, sx, y, out):
    i, k, g = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, 2)
    a = tl.load(x + i[:, None] * 32 + tl.arange(0, 32)[None, :])
    scales = tl.load(sx + i[:, None] * 2 + g[None, :])
    b = tl.load(y + k[:, None] * 16 + i[None, :])
    tl.store(out + i[:, None] * 16 + i[None, :], tl.dot_scaled(a, scales, "e2m1", b, None, "bf16"))


def test_scaled_dot_is_matmul_of_scaled_elements() -> None:
    text = structured(scaled_dot_kernel, {"x": "*u8", "sx": "*u8", "y": "*bf16", "out": "*fp32"})
    assert attributes_of(text, "tpk.unpack") == ["dim = 1 : i64"]
    assert attributes_of(text, "tpk.repeat") == ["dim = 1 : i64, times = 32 : i64"]
    for kind in ("tensor<16x64xf4E2M1FN>", "tensor<16x2xf8E8M0FNU>", "tensor<64x16xbf16>"):
        assert f": {kind} to tensor" in text
    assert re.search(r"linalg.matmul .*tensor<16x64xf32>, tensor<64x16xf32>\) outs", text)


@triton.jit
def batched_dot_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.arange(0, 2)[:, None, None] * B * B + i[None, :, None] * B + i[None, None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.dot(v, v))


def test_batched_dot_is_batch_matmul() -> None:
    text = structured(batched_dot_kernel, {"x": "*fp16", "out": "*fp32"}, B=16)
    assert "linalg.batch_matmul" in text
    assert "tensor<2x16x16xf16>" in text


@triton.jit
def reduce_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i[:, None] * B + i[None, :])
    best, where = tl.max(v, 1, return_indices=True)
    tl.store(out + i, best + where)
    tl.store(out, tl.sum(tl.sum(v, 1), 0))


def test_reductions_keep_their_region() -> None:
    text = structured(reduce_kernel, FLOATS, B=32)
    assert text.count('"tpk.reduce"') == 3
    assert text.count('"tpk.yield"') == 3
    assert re.search(r"\(tensor<32x32xf32>, tensor<32x32xi32>\) -> \(tensor<32xf32>, tensor<32xi32>\)", text)
    assert "(tensor<32xf32>) -> f32" in text


@triton.jit
def scan_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumsum(v, 0) + tl.cumprod(v, 0, reverse=True))


def test_scans_have_axis_and_direction() -> None:
    text = structured(scan_kernel, FLOATS, B=64)
    assert "{axis = 0 : i32, reverse = false}" in text
    assert "{axis = 0 : i32, reverse = true}" in text


@triton.jit
def shape_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    a, b = tl.split(tl.reshape(v, (B // 2, 2)))
    tl.store(out + i, tl.interleave(a, a * b))
    square = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + square, tl.permute(tl.reshape(v, (8, 8)), (1, 0)))


def test_shape_operations() -> None:
    text = structured(shape_kernel, FLOATS, B=64)
    for name in (
        '"tpk.split"',
        '"tpk.join"',
        "linalg.transpose",
        "tensor.expand_shape",
    ):
        assert name in text


@triton.jit
def integer_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + tl.arange(0, 16), tl.histogram(v, 16))
    tl.store(out + i, tl.gather(v, v % B, 0) + tl.umulhi(v.to(tl.uint32), 7).to(tl.int32))


def test_integer_operations() -> None:
    text = structured(integer_kernel, INTS, B=64)
    assert '"tpk.histogram"' in text
    assert attributes_of(text, "tpk.gather_along") == ["axis = 0 : i32"]
    assert re.search(r"%low, %high = arith.mului_extended|arith.mului_extended", text)


@triton.jit
def cast_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = v.to(tl.float8e5).to(tl.float32) + v.to(tl.float16, fp_downcast_rounding="rtz")
    tl.store(out + i, w + v.to(tl.int32, bitcast=True))


def test_casts() -> None:
    text = structured(cast_kernel, FLOATS, B=64)
    assert re.search(r'"tpk.fp_to_fp".* {rounding = "rtne"} : .tensor<64xf32>. -> tensor<64xf8E5M2>', text)
    assert re.search(r"arith.truncf .* toward_zero : tensor<64xf32> to tensor<64xf16>", text)
    assert "arith.bitcast" in text


@triton.jit
def atomic_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.atomic_add(out + v, v, mask=i < n)
    tl.atomic_xchg(out + i, v, sem="relaxed", scope="sys")
    tl.atomic_max(out, 3)
    tl.atomic_cas(out + i, v, v)


def test_atomics() -> None:
    text = structured(atomic_kernel, INTS, B=64)
    first, second, third = attributes_of(text, "tpk.atomic_rmw")
    assert first == (
        'kind = "add", operandSegmentSizes = array<i32: 1, 1, 1, 1>, scope = "gpu", sem = "acq_rel"'
    )
    assert (
        'kind = "exch", operandSegmentSizes = array<i32: 1, 1, 1, 0>, scope = "sys", sem = "relaxed"'
        in second
    )
    assert 'kind = "max"' in third
    assert ": (!llvm.ptr, i64, i32) -> i32" in text
    assert attributes_of(text, "tpk.atomic_cas") == ['scope = "gpu", sem = "acq_rel"']


@triton.jit
def debug_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_print("at", i)
    tl.device_print("pointers", x, n, out + i)
    tl.assume(n > 0)
    tl.debug_barrier()
    tl.store(out + i, tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_first", volatile=True))


def test_prints_hints_and_barriers() -> None:
    text = structured(debug_kernel, FLOATS, B=64)
    first, second = attributes_of(text, "tpk.print")
    assert 'prefix = " at: "' in first
    assert "pointers" not in first
    assert "pointers = array<i32: 1, 0, 1>" in second
    (load,) = attributes_of(text, "tpk.load")
    assert 'cache = "cg", evict = "evict_first"' in load
    assert "volatile" in load
    assert "assume" not in text


@triton.jit(noinline=True)
def element(p, n):
    return tl.load(p + n) + 1


@triton.jit
def calling_kernel(x, out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), element(x + n, n))


def test_calls_pass_base_pointers() -> None:
    text = structured(calling_kernel, FLOATS, B=64)
    assert re.search(r"call @\S+\(%\d+, %arg2\) : \(!llvm.ptr, i32\) -> f32", text)
    assert "func.func private" in text
    assert text.count("tpk.kernel") == 1


@triton.jit
def pointer_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    one = tl.load(x + n).to(tl.pointer_type(tl.float32))
    many = tl.load(x + i).to(tl.pointer_type(tl.float32))
    narrow = (out + 2 * i).to(tl.pointer_type(tl.int8))
    wide = (out + 2 * i).to(tl.pointer_type(tl.float64))
    v = tl.load(one + i) + tl.load(many + n) + tl.load(narrow) + tl.load(wide).to(tl.float32)
    tl.store(out + i, v)
    tl.store(x + i, (out + i).to(tl.int64))


def test_pointers_that_are_loaded_cast_or_stored() -> None:
    text = structured(pointer_kernel, {"x": "*i64", "out": "*fp32", "n": "i32"}, B=64)
    assert "llvm.inttoptr" in text
    assert "llvm.ptrtoint" in text
    assert attributes_of(text, "tpk.gather") == ["byte_offsets, operandSegmentSizes = array<i32: 1, 1, 0, 0>"]
    assert re.search(r'"tpk.load"\(%arg1, %c0_i64, %c8_i64\).* -> tensor<64xi8>', text)
    assert re.search(r'"tpk.load"\(%arg1, %c0_i64, %c1_i64\).* -> tensor<64xf64>', text)


@triton.jit
def boolean_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, ~tl.load(x + i, mask=i < n))


def test_booleans_are_bytes_in_memory() -> None:
    text = structured(boolean_kernel, {"x": "*i1", "out": "*i1", "n": "i32"}, B=64)
    assert re.search(r'"tpk.load".* -> tensor<64xi8>', text)
    assert re.search(r'"tpk.store".*tensor<64xi8>\) -> \(\)', text)


@triton.jit
def library_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(v) + libdevice.pow(v, v) + libdevice.asin(v))


def test_library_functions_are_upstream_math() -> None:
    text = structured(library_kernel, FLOATS, B=64)
    for name in ("math.tanh", "math.powf", "math.asin"):
        assert name in text


@triton.jit
def both(a, b):
    return a * b + 1, a - b


@triton.jit
def mapping_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    a, b = tl.map_elementwise(both, v, v)
    tl.store(out + i, a / b)


def test_map_elementwise_works_on_whole_tensors() -> None:
    text = structured(mapping_kernel, FLOATS, B=64)
    assert "arith.subf" in text
    assert "tensor<64xf32>" in text


@triton.jit
def one_element_kernel(x, out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, 1)).broadcast_to(B))


def test_one_element_is_extracted() -> None:
    text = structured(one_element_kernel, FLOATS, B=64)
    assert "tensor.extract" in text
    assert "tensor.splat" in text


@triton.jit
def unsigned_kernel(x, out, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.uint32) * B + tl.arange(0, B).to(tl.uint32)
    tl.store(out + i, tl.load(x + i % n, mask=i < n), mask=i < n)


def test_unsigned_indices_stay_structured() -> None:
    text = structured(unsigned_kernel, {"x": "*fp32", "out": "*fp32", "n": "u32"}, B=64)
    assert "arith.extui" in text
    assert "wrap_dims = array<i64: 0>" in text
    assert "tpk.scatter" not in text


@triton.jit
def returning_kernel(x, out, n, B: tl.constexpr):
    p = x + n
    if n > 3:
        p = out
        if n > 7:
            return
    if tl.load(x) > n:
        tl.store(p, 3)
        return
    tl.store(p + tl.arange(0, B), 4)


def test_nested_early_returns_become_conditions() -> None:
    text = structured(returning_kernel, INTS, B=64)
    assert "cf.br" not in text
    assert "cf.cond_br" not in text
    assert "scf.index_switch" not in text
    assert text.count(" return\n") == 1


@triton.jit
def polling_kernel(x, out, n):
    tl.atomic_poll(x, 1)
    tl.atomic_store(out, tl.atomic_load(x, sem="acquire"))


@pytest.mark.skipif(compat.release() < (3, 9), reason="Triton has tl.atomic_poll and its like since 3.9")
def test_atomic_loads_stores_and_polls() -> None:
    text = structured(polling_kernel, INTS)
    assert all('sem = "acquire"' in a for a in attributes_of(text, "tpk.atomic_poll"))
    assert all('sem = "acquire", volatile' in a for a in attributes_of(text, "tpk.load"))
    assert all('sem = "release", volatile' in a for a in attributes_of(text, "tpk.store"))


def from_text(body: str, arguments: str, names: str) -> str:
    """The structured form of a kernel written in TTIR: for operations that the front end seldom makes."""
    text = f"""module {{
      "tt.func"() <{{function_type = ({arguments}) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
      ^bb0({names}):
        {body}
        "tt.return"() : () -> ()
      }}) {{noinline = false}} : () -> ()
    }}"""
    module = import_ttir(text)
    assert module.operation.verify()
    return str(module)


def test_cat_and_unsplat() -> None:
    text = from_text(
        """%r = "tt.make_range"() <{end = 8 : i32, start = 0 : i32}> : () -> tensor<8xi32>
        %c = "tt.cat"(%r, %r) : (tensor<8xi32>, tensor<8xi32>) -> tensor<16xi32>
        %s = "tt.splat"(%p) : (!tt.ptr<i32>) -> tensor<16x!tt.ptr<i32>>
        "tt.store"(%s, %c) : (tensor<16x!tt.ptr<i32>>, tensor<16xi32>) -> ()
        %t = "tt.splat"(%p) : (!tt.ptr<i32>) -> tensor<1x!tt.ptr<i32>>
        %o = "tt.load"(%t) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}>
          : (tensor<1x!tt.ptr<i32>>) -> tensor<1xi32>
        %u = "tt.unsplat"(%o) : (tensor<1xi32>) -> i32
        "tt.store"(%p, %u) : (!tt.ptr<i32>, i32) -> ()""",
        "!tt.ptr<i32>",
        "%p: !tt.ptr<i32>",
    )
    assert "tensor.concat dim(0)" in text
    assert "tensor.extract" in text


def test_pointers_in_memory_are_integers() -> None:
    text = from_text(
        """%q = "tt.load"(%p) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}>
          : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
        "tt.store"(%p, %q) : (!tt.ptr<!tt.ptr<f32>>, !tt.ptr<f32>) -> ()
        %v = "tt.load"(%q) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}>
          : (!tt.ptr<f32>) -> f32
        "tt.store"(%q, %v) : (!tt.ptr<f32>, f32) -> ()""",
        "!tt.ptr<!tt.ptr<f32>>",
        "%p: !tt.ptr<!tt.ptr<f32>>",
    )
    assert "tpk.pointee = !llvm.ptr" in text
    assert "llvm.inttoptr" in text
    assert "(!llvm.ptr, i64) -> i64" in text


def test_asserts_keep_their_message() -> None:
    text = from_text('"tt.assert"(%c) <{message = "odd"}> : (i1) -> ()', "i1", "%c: i1")
    assert '"tpk.assert"(%arg0) {message = "odd"}' in text


def test_an_operation_that_does_not_take_pointers_is_refused() -> None:
    with pytest.raises(CompilationError, match=r"`other\.use` cannot take the result of `tt\.splat`"):
        from_text(
            """%s = "tt.splat"(%p) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
            "other.use"(%s) : (tensor<8x!tt.ptr<i32>>) -> ()""",
            "!tt.ptr<i32>",
            "%p: !tt.ptr<i32>",
        )


@triton.jit
def wrapping_kernel(x, out, s, n):
    lanes = tl.arange(0, 64)
    tl.store(out + lanes, tl.load(x + (tl.program_id(0) * s + lanes) % n))


def test_versions_of_an_access_have_attributes_of_their_own() -> None:
    text = structured(wrapping_kernel, {"x": "*fp32", "out": "*fp32", "s": "i32", "n": "i32"})
    assert sum("wrap_dims" in found for found in attributes_of(text, "tpk.load")) == 1
    (gather,) = attributes_of(text, "tpk.gather")
    assert "wrap_dims" not in gather


@triton.jit
def narrow_offsets_kernel(x, at, out):
    lanes = tl.arange(0, 64)
    tl.store(out + lanes, tl.load(x + tl.load(at + lanes)))


@pytest.mark.parametrize("kind", ["i8", "i16"])
def test_narrow_offsets_are_extended(kind: str) -> None:
    text = structured(narrow_offsets_kernel, {"x": "*fp32", "at": f"*{kind}", "out": "*fp32"})
    assert f"arith.extsi %0 : tensor<64x{kind}> to tensor<64xi32>" in text

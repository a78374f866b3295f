"""Compiler faults in operations on elements: arithmetic, comparison, conversion."""

from __future__ import annotations

import re

from triton_porting_kit.conformance.faults.fault import Apply, Rewrite, Table, in_language, method, rewrite
from triton_porting_kit.conformance.faults.rewriting import (
    Operation,
    attributes,
    each,
    renamed,
    replaced,
    swapped,
    written,
)
from triton_porting_kit.toolchain import compat

TABLE = Table()

# One or a few lines per fault.
# fmt: off


def _plant(name: str, sentence: str, change: Rewrite, *caught_by: str) -> None:
    """Add a fault between Triton's passes and the import of their result."""
    TABLE.add("compiler", name, sentence, rewrite("ttir", change), *map(in_language, caught_by))


def _apply(name: str, sentence: str, apply: Apply, *caught_by: str) -> None:
    TABLE.add("compiler", name, sentence, apply, *map(in_language, caught_by))


def _product_and_sum(operation: Operation) -> str:
    """Compute the product in float64, which is exact, and round it, so that no later pass can fuse it with the sum."""
    kind, n = operation.result_type, operation.number
    wide = kind.replace("f32", "f64")
    x, y, z = operation.operands
    lines = (
        f'%fault_x{n} = "arith.extf"({x}) : ({kind}) -> {wide}',
        f'%fault_y{n} = "arith.extf"({y}) : ({kind}) -> {wide}',
        f'%fault_p{n} = "arith.mulf"(%fault_x{n}, %fault_y{n}) : ({wide}, {wide}) -> {wide}',
        f'%fault_q{n} = "arith.truncf"(%fault_p{n}) : ({wide}) -> {kind}',
        f'{operation.results}"arith.addf"(%fault_q{n}, {z}) : ({kind}, {kind}) -> {kind}',
    )
    return "\n".join(operation.indent + line for line in lines)


def _predicate(old: int, new: int, operation: str = "arith.cmpi") -> Rewrite:
    return attributes(operation.replace(".", r"\."), rf"predicate = {old} : i64", f"predicate = {new} : i64")


_plant("sub-swapped", "x - y is y - x", swapped(r"arith\.sub[if]"), "arithmetic/sub-i32-*", "arithmetic/sub-fp32-*", "stress/programs/0000?")
_plant("div-swapped", "x / y is y / x", swapped(r"arith\.divf"), "arithmetic/div-fp32-*", "arithmetic/div-fp64-*")
_plant("select-swapped", "where() takes the other side", swapped(r"arith\.select", 1, 2), "comparison-and-selection/where-fp32-*", "stress/programs/0000?")
_plant("shift-swapped", "x << y is y << x", swapped(r"arith\.shli"), "bits/shl-i32-*")

_plant("divsi-unsigned", "signed division takes operands as unsigned", renamed("arith.divsi", "arith.divui"), "arithmetic/floordiv-i16-*", "arithmetic/floordiv-i64-*")
_plant("div-negative-constant", "a quotient by a negative constant is one too far from zero", lambda text: _divided_by_negative(text), "arithmetic/floordiv_constant-i8-tile_by-7", "arithmetic/floordiv_constant-i64-scalar_by-8")
_plant("fp64-nine-digits", "constants of fp64 keep nine digits", replaced(r"(-?\d\.\d{9,}(?:[eE][-+]\d+)?)(>? : (?:tensor<[0-9x]*)?f64)", lambda match: f"{float(match[1]):.8e}{match[2]}"), "arithmetic/mul_constant-fp64-tile_pi", "arithmetic/mul_constant-fp64-scalar_*")
_plant("divui-signed", "unsigned division takes operands as signed", renamed("arith.divui", "arith.divsi"), "arithmetic/floordiv-u16-*", "arithmetic/floordiv-u64-*")
_plant("remsi-unsigned", "signed remainders take operands as unsigned", renamed("arith.remsi", "arith.remui"), "arithmetic/mod-i32-*")
_plant("remsi-floored", "the remainder has the sign of the divisor",
    written(r"arith\.remsi", """
        %fault_a{n} = "arith.remsi"({0}, {1}) : ({T0}, {T1}) -> {T}
        %fault_b{n} = "arith.addi"(%fault_a{n}, {1}) : ({T}, {T}) -> {T}
        {r} = "arith.remsi"(%fault_b{n}, {1}) : ({T}, {T}) -> {T}"""), "arithmetic/mod-i32-*", "arithmetic/mod-i64-*")
_plant("shr-logical", "arithmetic right shifts fill with zeros", renamed("arith.shrsi", "arith.shrui"), "bits/shr-i16-*", "bits/shr-i32-*")
_plant("shr-arithmetic", "logical right shifts copy the sign", renamed("arith.shrui", "arith.shrsi"), "bits/shr-u16-*", "bits/shr-u32-*")
_plant("slt-unsigned", "signed < compares as unsigned", _predicate(2, 6), "comparison-and-selection/lt-i32-*")
_plant("ult-signed", "unsigned < compares as signed", _predicate(6, 2), "comparison-and-selection/lt-u32-*")
_plant("slt-is-sle", "integers' < is <=", _predicate(2, 3), "comparison-and-selection/lt-i16-*", "memory/store_below-i32-*")
_plant("sge-is-sgt", "integers' >= is >", _predicate(5, 4), "comparison-and-selection/ge-i32-*")
_plant("une-is-one", "NaN != NaN is false", _predicate(13, 6, "arith.cmpf"), "comparison-and-selection/ne-fp32-*", "comparison-and-selection/ne-fp64-*")
_plant("oeq-is-ueq", "NaN == x is true", _predicate(1, 8, "arith.cmpf"), "comparison-and-selection/eq-fp32-*")
_plant("ogt-is-oge", "floats' > is >=", _predicate(2, 3, "arith.cmpf"), "comparison-and-selection/gt-fp32-*", "comparison-and-selection/gt-fp16-*")

_plant("ptx-bytes", "prmt selects the other bytes", replaced("0x6420", "0x7531"), "inline-ptx/ptx_prmt-*")
_plant("ptx-pack", "neighbours in a pack of inline assembly are exchanged", replaced(r"f32 \$0, \$2, \$1;", "f32 $0, $1, $2;"), "inline-ptx/ptx_to_bf16-*", "inline-ptx/ptx_to_fp16-*")

_plant("ext-unsigned", "narrow signed integers are extended with zeros", renamed("arith.extsi", "arith.extui"), "conversions/to_i32-i8-*", "conversions/to_i64-i16-*")
_plant("ext-signed", "narrow unsigned integers are extended with their sign", renamed("arith.extui", "arith.extsi", unless=r"\(.*i1\) ->|i1>\)"), "conversions/to_i32-u8-*", "conversions/to_u64-u16-*")
_plant("itofp-unsigned", "signed integers become floats as unsigned", renamed("arith.sitofp", "arith.uitofp"), "conversions/to_fp32-i32-*", "conversions/to_fp64-i16-*")
_plant("itofp-signed", "unsigned integers become floats as signed", renamed("arith.uitofp", "arith.sitofp"), "conversions/to_fp32-u32-*")
_plant("fptoi-rounds", "floats become integers rounded to nearest, not towards zero",
    written(r"arith\.fptosi", """
        %fault_a{n} = "math.roundeven"({0}) : ({T0}) -> {T0}
        {r} = "arith.fptosi"(%fault_a{n}) : ({T0}) -> {T}"""), "conversions/to_i32-fp32-*", "conversions/to_i16-fp64-*")
_plant("max-nan", "maximum and minimum propagate NaN although they should not",
    written(r"arith\.(maxnumf)", '{r} = "arith.maximumf"({0}, {1}) : ({T0}, {T1}) -> {T}'), "arithmetic/maximum-fp32-*")
_plant("min-nan-lost", "minimum with propagate_nan drops NaN", renamed("arith.minimumf", "arith.minnumf"), "arithmetic/minimum_nan-fp32-*", "arithmetic/minimum_nan-fp16-*")
_plant("max-unsigned", "maximum of signed integers compares as unsigned", renamed("arith.maxsi", "arith.maxui"), "arithmetic/maximum-i16-*")
if compat.negates_floats():
    _plant("neg-zero", "-x is 0 - x: the zero loses its sign",
        written(r"arith\.negf", """
            %fault_a{n} = "arith.subf"({0}, {0}) : ({T}, {T}) -> {T}
            {r} = "arith.subf"(%fault_a{n}, {0}) : ({T}, {T}) -> {T}"""), "arithmetic/neg-fp32-*")
_plant("abs-ignored", "abs of integers changes nothing", written(r"math\.absi", '{r} = "arith.addi"({0}, {0}) : ({T}, {T}) -> {T}'), "arithmetic/abs-i32-*")
_plant("umulhi-signed", "umulhi multiplies as signed", written(r"tt\.mulhiui", '%fault_a{n}, {r} = "arith.mulsi_extended"({0}, {1}) : ({T}, {T}) -> ({T}, {T})'), "arithmetic/umulhi-*")
_plant("fma-rounds-twice", "fma is a product and a sum", each(r"math\.fma", _product_and_sum, where="f32"), "arithmetic/fma-fp32-*", "programs/fma-residue-fp32")
_plant("div-by-reciprocal", "div_rn is a product with the reciprocal, which rounds twice",
    written(r"tt\.precise_divf", """
        %fault_a{n} = "arith.constant"() <{{value = 1.0 : f32}}> : () -> f32
        %fault_b{n} = "tt.precise_divf"(%fault_a{n}, {1}) : (f32, f32) -> f32
        {r} = "arith.mulf"({0}, %fault_b{n}) : (f32, f32) -> f32""", where=r": \(f32, "), "arithmetic/div_rn-fp32-scalar")
_plant("precise-div", "div_rn is off by one in the last place",
    written(r"tt\.precise_divf", """
        %fault_a{n} = "arith.divf"({0}, {1}) : ({T}, {T}) -> {T}
        %fault_b{n} = "arith.mulf"(%fault_a{n}, {1}) : ({T}, {T}) -> {T}
        %fault_c{n} = "arith.divf"({0}, %fault_b{n}) : ({T}, {T}) -> {T}
        {r} = "arith.mulf"(%fault_a{n}, %fault_c{n}) : ({T}, {T}) -> {T}"""), "arithmetic/div_rn-*")
_plant("sqrt-approximate", "sqrt is x times rsqrt(x): NaN at 0",
    written(r"math\.sqrt", """
        %fault_a{n} = "math.rsqrt"({0}) : ({T}) -> {T}
        {r} = "arith.mulf"({0}, %fault_a{n}) : ({T}, {T}) -> {T}"""), "functions/sqrt-fp32-*")
_plant("exp-base", "exp is 2 to the x", renamed("math.exp", "math.exp2"), "functions/exp-fp32-*", "kernels/softmax/fp32-7x33")
_plant("sin-cos", "sin is cos", renamed("math.sin", "math.cos"), "functions/sin-fp32-*")
_plant("floor-truncates", "floor rounds towards zero", renamed("math.floor", "math.trunc"), "functions/floor-fp32-*")
_plant("bitcast-converts", "a bitcast of float to integer converts the value",
    written(r"tt\.bitcast", '{r} = "arith.fptosi"({0}) : ({T0}) -> {T}', where=r"f32\) -> i32|f32>\) -> tensor<[0-9x]*i32>"), "conversions/bitcast_i32-fp32-*")
_plant("wraps-saturate", "sums of 8-bit integers saturate",
    written(r"arith\.addi", """
        %fault_a{n} = "arith.addi"({0}, {1}) : ({T}, {T}) -> {T}
        %fault_b{n} = "arith.maxui"({0}, %fault_a{n}) : ({T}, {T}) -> {T}
        %fault_c{n} = "arith.cmpi"(%fault_a{n}, {0}) <{{predicate = 6 : i64}}> : ({T}, {T}) -> i1
        {r} = "arith.select"(%fault_c{n}, {0}, %fault_b{n}) : (i1, {T}, {T}) -> {T}""", where=r": \(i8, i8\)"), "arithmetic/add-u8-scalar")
_plant("xor-is-or", "^ is |", renamed("arith.xori", "arith.ori"), "bits/xor-i32-*")
_plant("denormals-lost", "products of float32 that are denormal become zero",
    written(r"arith\.mulf", """
        %fault_a{n} = "arith.mulf"({0}, {1}) : (f32, f32) -> f32
        %fault_b{n} = "arith.constant"() <{{value = 1.17549435E-38 : f32}}> : () -> f32
        %fault_c{n} = "arith.constant"() <{{value = 0.0 : f32}}> : () -> f32
        %fault_d{n} = "math.absf"(%fault_a{n}) : (f32) -> f32
        %fault_e{n} = "arith.cmpf"(%fault_d{n}, %fault_b{n}) <{{predicate = 4 : i64}}> : (f32, f32) -> i1
        {r} = "arith.select"(%fault_e{n}, %fault_c{n}, %fault_a{n}) : (i1, f32, f32) -> f32""", where=r": \(f32, f32\)"), "arithmetic/mul-fp32-scalar")
_plant("constants-short", "constants of float32 have the precision of float16",
    replaced(r"(\d\.\d{3})\d+([eE][+-]\d+ : f32|[eE][+-]\d+> : tensor<[0-9x]*f32)", r"\g<1>\g<2>"), "random-numbers/rand-*")
_plant("constants-wide", "constants of 64 bits keep their low 32",
    replaced(r"value = (-?\d{10,}) : i64", lambda match: f"value = {int(match[1]) & 0xffffffff} : i64"), "random-numbers/philox*")
_plant("predicate-inverted", "~x of booleans changes nothing",
    written(r"arith\.xori", '{r} = "arith.ori"({0}, {0}) : ({T}, {T}) -> {T}', where=r"i1\)|i1>\)"), "bits/invert-i1-*", "bits/not-*")

_apply("clamp-nan", "clamp with propagate_nan drops NaN", rewrite("structured", replaced(r"propagate_nan = true", "propagate_nan = false")), "arithmetic/clamp_nan-fp32-*")
_apply("truncf-to-zero", "conversions to float16 and bfloat16 round towards zero", rewrite("structured", replaced(r"arith\.truncf (%\S+) :", r"arith.truncf \1 toward_zero :")), "conversions/to_fp16-fp32-*", "conversions/to_bf16-fp32-*")
_apply("rtz-ignored", "fp_downcast_rounding is ignored", rewrite("structured", replaced(r"toward_zero :", ":")), "conversions/to_bf16_rtz-fp32-*", "conversions/to_fp16_rtz-*")
_apply("fp8-truncates", "conversions to 8-bit floats round towards zero", rewrite("structured", replaced(r'rounding = "rtne"', 'rounding = "rtz"')), "conversions/to_fp8e5-fp32-*", "conversions/to_fp8e4nv-fp32-*")
_apply("fp8-format", "an e5m2 is stored as an e5m2fnuz", rewrite("structured", replaced(r"f8E5M2\b", "f8E5M2FNUZ")), "conversions/to_fp8e5-fp32-*")
_apply("fp-fusion-forced", "enable_fp_fusion=False is ignored",
    method("backend", parse_options=lambda real, self, options: real(self, {**options, "enable_fp_fusion": True})), "arithmetic/chain_unfused-*")


def _divided_by_negative(text: str) -> str:
    negative = set(re.findall(r'(%\S+) = "arith\.constant"\(\) <\{value = (?:dense<)?-\d', text))

    def change(operation: Operation) -> str | None:
        if operation.operands[1] not in negative:
            return None
        n, kind = operation.number, operation.result_type
        x, y = operation.operands
        return (
            f'{operation.indent}%fault_x{n} = "arith.subi"({x}, {y}) : ({kind}, {kind}) -> {kind}\n'
            f'{operation.indent}{operation.results}"arith.divsi"(%fault_x{n}, {y}) : ({kind}, {kind}) -> {kind}'
        )

    return each(r"arith\.divsi", change)(text)

"""Compiler faults in operations on tiles and in control flow: shapes, reductions, products, loops."""

from __future__ import annotations

import re

from triton_porting_kit.conformance.faults.fault import Rewrite, Table, in_language, rewrite
from triton_porting_kit.conformance.faults.rewriting import Operation, each, replaced, swapped, written

TABLE = Table()

# One or a few lines per fault.
# fmt: off

REDUCE = r'^( *)(%\S+) = "tpk\.reduce"\((%[\w#]+)\) \(\{((?:(?!"tpk\.reduce").)*?)\}\) \{axis = '


def _with(operation: Operation, at: int, value: str) -> Operation:
    """Replace an operand of an operation."""
    operation.operands[at] = value
    return operation


def _plant(name: str, sentence: str, change: Rewrite, *caught_by: str, stage: str = "structured") -> None:
    TABLE.add("compiler", name, sentence, rewrite(stage, change), *map(in_language, caught_by))


def _multiline(pattern: str, new: str) -> Rewrite:
    return lambda text: re.sub(pattern, new, text, flags=re.MULTILINE | re.DOTALL)


def _last_left_out(match: re.Match[str]) -> str:
    """Set the last element of a reduction's input to zero."""
    indent, result, value, region, count, kind = match.groups()
    n, tensor = match.start(), f"tensor<{count}x{kind}>"
    lines = [
        f'%fault_r{n} = "tpk.range"() {{start = 0 : i32}} : () -> tensor<{count}xi32>',
        f"%fault_l{n} = arith.constant dense<{int(count) - 1}> : tensor<{count}xi32>",
        f"%fault_c{n} = arith.cmpi ne, %fault_r{n}, %fault_l{n} : tensor<{count}xi32>",
        f"%fault_z{n} = arith.constant dense<0> : {tensor}",
        f"%fault_s{n} = arith.select %fault_c{n}, {value}, %fault_z{n} : tensor<{count}xi1>, {tensor}",
    ]
    before = "\n".join(indent + line for line in lines)
    return f'{before}\n{indent}{result} = "tpk.reduce"(%fault_s{n}) ({{{region}}}) {{axis = 0 : i32}} : ({tensor})'


def _reduce_last(text: str) -> str:
    pattern = REDUCE + r"0 : i32\} : \(tensor<(\d+)x(i\d+)>\)"
    return re.sub(pattern, _last_left_out, text, flags=re.MULTILINE | re.DOTALL)


_AXIS = (
    r"\1%fault_c\5_\6 = tensor.collapse_shape \3 [[0, 1]] : tensor<\5x\6x\7> into tensor<256x\7>\n"
    r"\1%fault_e\5_\6 = tensor.expand_shape %fault_c\5_\6 [[0, 1]] output_shape [\6, \5] : tensor<256x\7> into tensor<\6x\5x\7>\n"
    r'\1\2 = "tpk.reduce"(%fault_e\5_\6) ({\4}) {axis = 1 : i32} : (tensor<\6x\5x\7>)'
)
_plant("reduce-axis", "a reduction along the rows runs along the columns", _multiline(REDUCE + r"0 : i32\} : \(tensor<(8)x(32)x(\w+)>\)", _AXIS), "reductions/sum-i32-tile_8x32_axis0")
_plant("reduce-last", "a sum leaves the last element out", _reduce_last, "reductions/sum-i32-tile_1024_axis0")
_plant("argmax-tie", "argmax takes the last of equal elements", replaced(r"arith\.cmpi slt(, %arg\d+, %arg\d+ : i32[^\n]*\n[^\n]*arith\.andi)", r"arith.cmpi sgt\1"), "reductions/argmax-i32-*", "reductions/argmax-fp16-*")
_plant("reduce-or-and", "a reduction by | is one by &", _multiline(r"(tpk\.reduce[^\n]*\n[^\n]*\n\s*\S+ = )arith\.ori", r"\1arith.andi"), "reductions/reduce_or-i32-tile_8x32_*")
_plant("max-is-min", "max is min", _multiline(r"(tpk\.reduce[^\n]*\n[^\n]*\n\s*\S+ = )arith\.maxsi", r"\1arith.minsi"), "reductions/max-i32-*")
_plant("float-max-is-min", "max of floats is min", _multiline(r"(tpk\.reduce[^\n]*\n[^\n]*\n\s*\S+ = )arith\.(maxnumf|maximumf)", r"\1arith.minnumf"), "reductions/max-fp32-tile_8x32_*", "kernels/softmax/fp32-9x500-shifted")
_plant("scan-reversed", "scans run from the other end", replaced(r"reverse = (true|false)", lambda m: f"reverse = {'false' if m[1] == 'true' else 'true'}"), "scans/cumsum-i32-*", "scans/cumprod-fp32-*")
_plant("scan-reverse-ignored", "scans with reverse=True run forwards", replaced(r"reverse = true", "reverse = false"), "scans/cumsum-fp32-*_reverse")
_plant("gather-next", "gather takes the next element",
    written(r"tpk\.gather_along", """
        %fault_o{n} = "arith.constant"() <{{value = dense<1> : {T1}}}> : () -> {T1}
        %fault_i{n} = "arith.xori"({1}, %fault_o{n}) : ({T1}, {T1}) -> {T1}
        {r} = "tpk.gather_along"({0}, %fault_i{n}) {{axis = 0 : i32}} : ({T0}, {T1}) -> {T}""", where=r"axis = 0 : i32\} : \(tensor<\d+xi32>, tensor<\d+xi32>\)"), "sorting-and-gathering/gather-i32-tile_32_axis0_to32")


def _without_mask(operation: Operation) -> None:
    types = operation.operand_types
    if len(types) == 2:
        del operation.operands[1], types[1]
        operation.set_types(types)


def _split_swapped(text: str) -> str:
    results = "|".join(re.findall(r'(%\w+):2 = "tpk\.split"', text))
    return re.sub(rf"({results})#([01])", lambda match: f"{match[1]}#{1 - int(match[2])}", text) if results else text


_plant("histogram-mask", "a histogram ignores its mask", each(r"tpk\.histogram", _without_mask), "sorting-and-gathering/histogram_masked-i32-tile_256_bins16")
_plant("sort-direction", "sort ignores descending=True", replaced(r"arith\.cmpi sgt(, %\S+, %\S+ : tensor<2x2x2x)", r"arith.cmpi slt\1"), "sorting-and-gathering/sort_descending-i32-tile_64")
_plant("join-swapped", "join takes its operands the other way round", swapped(r"tpk\.join"), "shapes/join-i32-tile_16", "shapes/interleave-fp16-tile_16")
_plant("split-swapped", "split returns its results the other way round", _split_swapped, "shapes/split-i32-tile_16x2")
_plant("cat-repeats", "cat takes its first operand twice", replaced(r"tensor\.concat dim\(0\) (%\S+), (%\S+) :", r"tensor.concat dim(0) \1, \1 :"), "shapes/cat-i32-tile_64")
_plant("trans-ignored", "trans of a square tile changes nothing", replaced(r"(linalg\.transpose ins\(\S+ : tensor<(\d+)x\2x.*permutation = )\[1, 0\]", r"\1[0, 1]"), "shapes/trans-i32-tile_16x16", "shapes/trans-fp32-tile_64x64")
_plant("broadcast-axis", "a square tile is broadcast along the wrong axis", replaced(r"(linalg\.broadcast ins\(\S+ : tensor<(\d+)x(\w+)>\) outs\(\S+ : tensor<\2x\2x\3>\) dimensions = )\[1\]", r"\1[0]"), "shapes/outer-*")

_MATMUL = r"(linalg\.matmul [^\n]*?ins\()(%\S+), (%\S+) : "
_plant("dot-swapped", "a square product is b @ a", replaced(_MATMUL + r"(tensor<\S+>), \4\)", r"\1\3, \2 : \4, \4)"), "matrix-products/dot-fp32-16x16x16", "matrix-products/dot-i8-16x16x16")
_plant("dot-transposed", "the second operand of a square product is transposed", replaced(r"^( *)(\S+ = )" + _MATMUL.replace(r"(%\S+), (%\S+)", r"(%\S+), %(\S+)") + r"(tensor<16x16x\w+>), \6\)",
    "\\1%fault_e\\5 = tensor.empty() : \\6\n\\1%fault_t\\5 = linalg.transpose ins(%\\5 : \\6) outs(%fault_e\\5 : \\6) permutation = [1, 0]\n\\1\\2\\3\\4, %fault_t\\5 : \\6, \\6)"), "matrix-products/dot-fp16-16x16x16", "matrix-products/dot-fp64-16x16x16")
_plant("dot-accumulator", "dot ignores acc",
    written(r"tt\.dot", """
        %fault_z{n} = "arith.constant"() <{{value = dense<0.0> : {T2}}}> : () -> {T2}
        {r} = "tt.dot"({0}, {1}, %fault_z{n}) <{{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}}> : ({T0}, {T1}, {T2}) -> {T}""", where=r"f(32|16|64)>$|f(32|16|64)> loc"), "matrix-products/dot_acc-fp32-16x16x16_acc", "matrix-products/dot_acc-fp16-*", "kernels/matmul/fp32-130x67x96", stage="ttir")
_plant("dot-half", "products of float16 are accumulated as float16", replaced(r"^( *)%(\S+) = (linalg\.matmul [^\n]*xf16>[^\n]*-> tensor<(\S+)xf32>)[^\n]*$",
    "\\1%fault_l\\2 = \\3\n\\1%fault_h\\2 = arith.truncf %fault_l\\2 : tensor<\\4xf32> to tensor<\\4xf16>\n\\1%\\2 = arith.extf %fault_h\\2 : tensor<\\4xf16> to tensor<\\4xf32>"), "matrix-products/dot-fp16-32x64x16")
_plant("dot-precision", "operands of float32 products are rounded to bfloat16",
    written(r"tt\.dot", """
        %fault_a{n} = "arith.truncf"({0}) : ({T0}) -> {A}
        %fault_b{n} = "arith.extf"(%fault_a{n}) : ({A}) -> {T0}
        {r} = "tt.dot"(%fault_b{n}, {1}, {2}) <{{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}}> : ({T0}, {T1}, {T2}) -> {T}""".replace("{A}", "tensor<16x64xbf16>"), where=r"\(tensor<16x64xf32>, "), "matrix-products/dot_precision-fp32-16x32x64_ieee", stage="ttir")
_plant("scales-ignored", "dot_scaled ignores the scales of its first operand", each(r"tt\.dot_scaled", lambda o: o.drop(3), where=r"operandSegmentSizes = array<i32: 1, 1, 1, 1"), "matrix-products-with-scales/dot_scaled_e4m3-fp8e4nv-16x16x64", stage="ttir")

_plant("loop-short", "a for loop leaves its last iteration out",
    each(r"scf\.for", lambda o: f'{o.indent}{o.fresh("ub")} = "arith.subi"({o.operands[1]}, {o.operands[2]}) : (i32, i32) -> i32\n' + str(_with(o, 1, o.fresh("ub")))), "control-flow-and-functions/for-i32-tile_64", "control-flow-and-functions/for_tiles-*", "kernels/matmul/fp32-17x33x65", "kernels/online-softmax/fp32-5x2000", stage="ttir")
_plant("loop-step", "a for loop's step is 1",
    each(r"scf\.for", lambda o: f'{o.indent}{o.fresh("s")} = "arith.constant"() <{{value = 1 : i32}}> : () -> i32\n' + str(_with(o, 2, o.fresh("s")))), "control-flow-and-functions/for_step-i32-*", stage="ttir")
_plant("while-more", "a while loop runs once more", replaced(r"arith\.cmpi slt(,[^\n]*\n\s*scf\.condition)", r"arith.cmpi sle\1"), "control-flow-and-functions/while-i32-*")
_plant("if-inverted", "if and else change places",
    each(r"scf\.if", lambda o: f'{o.indent}{o.fresh("t")} = "arith.constant"() <{{value = true}}> : () -> i1\n{o.indent}{o.fresh("c")} = "arith.xori"({o.operands[0]}, {o.fresh("t")}) : (i1, i1) -> i1\n' + str(_with(o, 0, o.fresh("c")))), "control-flow-and-functions/if-i32-*", "control-flow-and-functions/if_scalar-i32-*", stage="ttir")
_plant("carried-swapped", "two values that a loop carries change places", swapped(r"scf\.yield", where=r"\((tensor<\S+>), \1\)"), "control-flow-and-functions/for_tiles-i32-*", stage="ttir")
_plant("map-order", "map_elementwise swaps the results of a function of two", swapped(r"tt\.map_elementwise\.return", where=r"\((\w+), \1\)"), "control-flow-and-functions/map_elementwise_two-*", stage="ttir")

"""Compiler faults in memory accesses: masks, bounds, addresses, atomic operations, descriptors."""

from __future__ import annotations

from triton_porting_kit.conformance.faults.fault import Rewrite, Table, in_language, rewrite
from triton_porting_kit.conformance.faults.rewriting import (
    attributes,
    derived,
    dropped,
    replaced,
    swapped,
    written,
)

TABLE = Table()

# One or a few lines per fault.
# fmt: off

# Operand groups of loads and stores, of gathers and scatters, and of atomics in the structured form.
STRIDES, LO, HI, WRAP_START, WRAP_SIZE, MASK, LAST = range(2, 9)
GATHER_MASK, GATHER_LAST = 2, 3
ATOMIC_MASK = 3

LOAD, STORE = r"tpk\.load", r"tpk\.store"

PLUS_ONE = """
    %fault_one{n} = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
    {y} = "arith.addi"({x}, %fault_one{n}) : (i64, i64) -> i64"""
MINUS_ONE = PLUS_ONE.replace("arith.addi", "arith.subi")
MULTIPLE_OF_8 = """
    %fault_eight{n} = "arith.constant"() <{{value = -8 : i64}}> : () -> i64
    {y} = "arith.andi"({x}, %fault_eight{n}) : (i64, i64) -> i64"""


def _plant(name: str, sentence: str, change: Rewrite, *caught_by: str) -> None:
    """Add a fault between the structured form and its lowering."""
    TABLE.add("compiler", name, sentence, rewrite("structured", change), *map(in_language, caught_by))


_plant("store-one-more", "a masked store writes one element too many", derived(STORE, HI, PLUS_ONE, index=0), "memory/store_below-i32-tile_17", "memory/store_below-i8-tile_17")
_plant("store-one-less", "a masked store leaves the last element out", derived(STORE, HI, MINUS_ONE, index=0), "memory/store_below-i32-tile_64", "memory/load_store-fp32-tile_17")
_plant("load-one-less", "a masked load leaves the last element out", derived(LOAD, HI, MINUS_ONE, index=0), "memory/load_store-i32-tile_17", "memory/load_store-fp16-tile_17x4")
_plant("tail-dropped", "elements after the last full vector of 8 are not stored", derived(STORE, HI, MULTIPLE_OF_8, index=0), "memory/load_store-i32-tile_17", "arithmetic/add-fp32-tile_324", "kernels/vector-add/fp32-1023", "kernels/rms-norm/fp32-3x70")
_plant("first-dropped", "a store with bounds begins with the second element", derived(STORE, LO, PLUS_ONE, index=0), "memory/load_store-i64-tile_17")
_plant("store-mask-dropped", "a store's mask is ignored", dropped(STORE, MASK), "memory/store_every_third-i16-*", "memory/store_every_third-fp32-*")
_plant("store-bounds-dropped", "a store ignores that its mask is a range", dropped(STORE, LO, HI), "memory/store_below-i32-tile_17", "memory/store_nothing-i32-*")
_plant("load-mask-dropped", "a load's mask is ignored, and so is other", dropped(LOAD, MASK), "memory/load_other-i32-*", "memory/load_other_tile-fp32-*")
_plant("other-zero", "other is taken for 0", dropped(LOAD, LAST), "memory/load_other-i16-*", "memory/load_other-fp32-*", "memory/load_other_tile-i64-*")
_plant("other-garbage", "masked-off lanes hold garbage instead of other",
    derived(LOAD, LAST, """
        %fault_c{n} = "arith.constant"() <{{value = -23131 : {T}}}> : () -> {T}
        {y} = "arith.addi"({x}, %fault_c{n}) : ({T}, {T}) -> {T}""", where=r", i32\) ->"), "memory/load_other-i32-*")
_plant("scatter-mask-dropped", "a scatter's mask is ignored", dropped(r"tpk\.scatter", GATHER_MASK), "memory/scatter-i32-tile_17x4", "memory/scatter-fp32-tile_17x4")
_plant("gather-reads-on", "masked-off lanes of a gather read from their addresses", dropped(r"tpk\.gather", GATHER_MASK, where=r"operandSegmentSizes = array<i32: 1, 1, 1"), "memory/masked_off-i32-tile_17")
_plant("strides-swapped", "rows and columns are addressed with each other's stride", swapped(LOAD, 2, 3, where=r"tensor<8x32x"), "memory/load_transposed-i32-*", "memory/load_transposed-fp64-*")
_plant("row-stride", "the row stride is taken to be the row length", derived(LOAD, STRIDES, '{y} = "arith.constant"() <{{value = 16 : i64}}> : () -> i64', index=0, where=r"tensor<8x32x"), "descriptors-and-block-pointers/descriptor_load-i32-inside")
_plant("backwards-forwards", "negative strides are taken as positive", derived(LOAD, STRIDES, '{y} = "math.absi"({x}) : (i64) -> i64'), "memory/load_backwards-i16-*")
_plant("wrap-late", "addresses that wrap around do so one element late", derived(LOAD, WRAP_SIZE, PLUS_ONE), "memory/load_wrapped-i32-*")
_plant("wrap-start-lost", "addresses that wrap around begin at 0", derived(LOAD, WRAP_START, '{y} = "arith.constant"() <{{value = 0 : i64}}> : () -> i64'), "memory/load_wrapped-fp32-*")
_plant("offset-lost", "the offset of a load's base is ignored", derived(LOAD, 1, '{y} = "arith.constant"() <{{value = 0 : i64}}> : () -> i64', where=r"-> tensor"), "memory/load_backwards-i32-*", "memory/load_same-i32-*")
_plant("gather-short", "offsets of a gather keep 8 bits",
    derived(r"tpk\.gather", 1, """
        %fault_c{n} = "arith.constant"() <{{value = dense<127> : {T}}}> : () -> {T}
        {y} = "arith.andi"({x}, %fault_c{n}) : ({T}, {T}) -> {T}""", where=r"xi32>\) ->"), "memory/load_gather-i32-tile_256")
_plant("range-start", "arange begins at 0 whatever its start", attributes(r"tpk\.range", r"start = \d+", "start = 0"), "shapes/arange-i32-*")

_plant("padding-zero", "a descriptor's NaN padding is 0", replaced(r"0x7FC00000 : f32", "0.000000e+00 : f32"), "descriptors-and-block-pointers/descriptor_load_nan-fp32-over_the_end")
_plant("descriptor-store-over", "a descriptor's store ignores the tensor's end", dropped(STORE, LO, HI, where=r"tensor<8x32x"), "descriptors-and-block-pointers/descriptor_store-i32-over_the_end")
_plant("descriptor-load-shifted", "a descriptor's load that begins before the tensor is off by one row", derived(LOAD, LO, PLUS_ONE, index=0, where=r"tensor<8x32x"), "descriptors-and-block-pointers/descriptor_load-i32-before_the_start")

_PLAIN = """
    %fault_old{n} = "tpk.gather"({0}, {1}) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!llvm.ptr, {T1}) -> {T}
    %fault_new{n} = "arith.addi"(%fault_old{n}, {2}) : ({T}, {T}) -> {T}
    "tpk.scatter"({0}, {1}, %fault_new{n}) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>}} : (!llvm.ptr, {T1}, {T}) -> ()
    {r} = "arith.addi"(%fault_old{n}, {2}) : ({T}, {T}) -> {T}"""
_plant("atomic-plain", "atomic_add is a load, a sum and a store", written(r"tpk\.atomic_rmw", _PLAIN, where='kind = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0>'), "atomics/atomic_add_contended-i32-programs")
_plant("atomic-fadd-plain", "atomic_add of floats is a load, a sum and a store", written(r"tpk\.atomic_rmw", _PLAIN.replace("arith.addi", "arith.addf"), where='kind = "fadd", operandSegmentSizes = array<i32: 1, 1, 1, 0>'), "atomics/atomic_add_contended-fp32-programs")
_NEW = """
    %fault_old{n} = "tpk.atomic_rmw"({0}, {1}, {2}, {3}) {{kind = "add", operandSegmentSizes = array<i32: 1, 1, 1, 1>, scope = "gpu", sem = "acq_rel"}} : (!llvm.ptr, {T1}, {T2}, {T3}) -> {T}
    {r} = "arith.addi"(%fault_old{n}, {2}) : ({T}, {T}) -> {T}"""
_plant("atomic-new", "atomic_add returns the new value", written(r"tpk\.atomic_rmw", _NEW, where='kind = "add", operandSegmentSizes = array<i32: 1, 1, 1, 1>'), "atomics/atomic_add-i32-tile")
_plant("atomic-mask-dropped", "an atomic operation's mask is ignored", dropped(r"tpk\.atomic_rmw", ATOMIC_MASK), "atomics/atomic_add-i32-tile", "atomics/atomic_xchg-fp32-tile")
_plant("atomic-max-unsigned", "atomic_max of signed integers compares as unsigned", replaced('kind = "max"', 'kind = "umax"'), "atomics/atomic_max-i32-tile", "atomics/atomic_max-i64-tile")
_plant("atomic-min-is-max", "atomic_min is atomic_max", replaced('kind = "min"', 'kind = "max"'), "atomics/atomic_min-i32-tile")
_plant("atomic-xor-is-or", "atomic_xor is atomic_or", replaced('kind = "xor"', 'kind = "or"'), "atomics/atomic_xor-i32-tile", "atomics/atomic_xor_contended-i32-programs")
_plant("cas-always", "atomic_cas does not compare",
    written(r"tpk\.atomic_cas", '{r} = "tpk.atomic_rmw"({0}, {1}, {3}) {{kind = "exch", operandSegmentSizes = array<i32: 1, 1, 1, 0>, scope = "gpu", sem = "acq_rel"}} : (!llvm.ptr, {T1}, {T3}) -> {T}'), "atomics/atomic_cas-i32-tile", "atomics/atomic_cas-fp32-tile")
_plant("cas-swapped", "atomic_cas compares with the new value, and stores the old", swapped(r"tpk\.atomic_cas", 2, 3), "atomics/atomic_cas-i32-tile", "atomics/atomic_cas-i64-scalar")

_EXCHANGED = """
    {r} = "tpk.gather"({0}, {1}) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!llvm.ptr, {T1}) -> {T}
    "tpk.scatter"({0}, {1}, {2}) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>}} : (!llvm.ptr, {T1}, {T}) -> ()"""
_OLD = """
    {r} = "tpk.gather"({0}, {1}) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!llvm.ptr, {T1}) -> {T}
    %fault_new{n} = "arith.addi"({r}, {2}) : ({T}, {T}) -> {T}
    "tpk.scatter"({0}, {1}, %fault_new{n}) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>}} : (!llvm.ptr, {T1}, {T}) -> ()"""
_plant("atomic-xchg-plain", "atomic_xchg is a load and a store", written(r"tpk\.atomic_rmw", _EXCHANGED, where='kind = "exch", operandSegmentSizes = array<i32: 1, 1, 1, 0>'), "atomics/atomic_xchg_raced-i*", "atomics/atomic_xchg_raced-fp*")
_plant("atomic-or-plain", "atomic_or is a load, an or and a store", written(r"tpk\.atomic_rmw", _OLD.replace("arith.addi", "arith.ori"), where='kind = "or", operandSegmentSizes = array<i32: 1, 1, 1, 0>'), "atomics/atomic_and_or_raced-i*")
_plant("atomic-max-plain", "atomic_max is a load, a maximum and a store", written(r"tpk\.atomic_rmw", _OLD.replace("arith.addi", "arith.maxsi"), where='kind = "max", operandSegmentSizes = array<i32: 1, 1, 1, 0>.*xi32'), "atomics/atomic_max_raced-i32-*")
_plant("atomic-16-plain", "atomic_add of fp16 is a load, a sum and a store", written(r"tpk\.atomic_rmw", _PLAIN.replace("arith.addi", "arith.addf"), where='kind = "fadd", operandSegmentSizes = array<i32: 1, 1, 1, 0>.*xf16'), "atomics/atomic_add_raced-fp16-*")
_SWAPPED = """
    {r} = "tpk.gather"({0}, {1}) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!llvm.ptr, {T1}) -> {T}
    %fault_same{n} = "arith.cmpi"({r}, {2}) <{{predicate = 0 : i64}}> : ({T}, {T}) -> BOOLEANS
    %fault_new{n} = "arith.select"(%fault_same{n}, {3}, {r}) : (BOOLEANS, {T}, {T}) -> {T}
    "tpk.scatter"({0}, {1}, %fault_new{n}) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>}} : (!llvm.ptr, {T1}, {T}) -> ()"""
_plant("atomic-cas-plain", "atomic_cas is a load, a comparison and a store", written(r"tpk\.atomic_cas", _SWAPPED.replace("BOOLEANS", "tensor<128xi1>"), where=r"-> tensor<128xi32>"), "atomics/atomic_cas_raced-i32-*")
_HALF = """
    %fault_now{n} = "tpk.gather"({0}, {1}) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!llvm.ptr, {T1}) -> {T}
    %fault_low{n} = "arith.constant"() <{{value = dense<4294967295> : {T}}}> : () -> {T}
    %fault_other{n} = "arith.xori"(%fault_now{n}, {2}) : ({T}, {T}) -> {T}
    %fault_known{n} = "arith.andi"(%fault_other{n}, %fault_low{n}) : ({T}, {T}) -> {T}
    %fault_taken{n} = "arith.xori"(%fault_now{n}, %fault_known{n}) : ({T}, {T}) -> {T}
    {r} = "tpk.atomic_cas"({0}, {1}, %fault_taken{n}, {3}) {{scope = "gpu", sem = "acq_rel"}} : (!llvm.ptr, {T1}, {T}, {T}) -> {T}"""
_plant("cas-lower-half", "atomic_cas of 64 bits compares the lower 32", written(r"tpk\.atomic_cas", _HALF, where=r"-> tensor<32xi64>"), "atomics/atomic_cas-i64-tile")
_AT_MOST = """
    %fault_most{n} = "arith.constant"() <{{value = 65536 : i64}}> : () -> i64
    {y} = "arith.minsi"({x}, %fault_most{n}) : (i64, i64) -> i64"""
_plant("store-65536", "a store writes at most 65536 elements along a dimension", derived(STORE, HI, _AT_MOST, index=0), "large-tiles/large_copy-fp32-tile_70001")

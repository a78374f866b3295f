module attributes {tpk.structured = 1 : i32} {
  func.func public @wrap_around(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32) attributes {tpk.kernel} {
    %c128_i32 = arith.constant 128 : i32
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %0 = arith.extsi %arg2 : i32 to i64
    %1 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %2 = arith.muli %1, %c128_i32 : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = "tpk.load"(%arg0, %c0_i64, %c1_i64, %3, %0) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 1, 0, 0>, wrap_dims = array<i64: 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<128xf32>
    "tpk.store"(%arg1, %3, %c1_i64, %4) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<128xf32>) -> ()
    return
  }
}

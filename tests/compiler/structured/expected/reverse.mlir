module attributes {tpk.structured = 1 : i32} {
  func.func public @reverse(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32) attributes {tpk.kernel, tpk.promises = array<i64: 2, 2, 32, 0, 1, 0, 6, 0, 1, 13, 2, 32, 3, 0, 0, 0, 128, 0, 7, 4, 5, 13, 6, 32, 0, -1, 0, 7, 8, 7, 5, 3, 9, 0, 0, 0, 0, 127, 0, 12, 11, 12, 7, 8, 13, 5, 10, 14, 17, 15, 32>} {
    %c128_i32 = arith.constant 128 : i32
    %c1_i32 = arith.constant 1 : i32
    %c1_i64 = arith.constant 1 : i64
    %c0_i64 = arith.constant 0 : i64
    %c128_i64 = arith.constant 128 : i64
    %c-1_i64 = arith.constant -1 : i64
    %0 = arith.extsi %arg2 : i32 to i64
    %1 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %2 = arith.muli %1, %c128_i32 : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.subi %arg2, %c1_i32 : i32
    %5 = arith.extsi %4 : i32 to i64
    %6 = arith.subi %5, %3 : i64
    %7 = arith.addi %6, %c1_i64 : i64
    %8 = arith.maxsi %7, %c0_i64 : i64
    %9 = arith.minsi %8, %c128_i64 : i64
    %10 = "tpk.load"(%arg0, %6, %c-1_i64, %c0_i64, %9) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<128xf32>
    %11 = arith.subi %0, %3 : i64
    %12 = arith.maxsi %11, %c0_i64 : i64
    %13 = arith.minsi %12, %c128_i64 : i64
    "tpk.store"(%arg1, %3, %c1_i64, %c0_i64, %13, %10) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<128xf32>) -> ()
    return
  }
}

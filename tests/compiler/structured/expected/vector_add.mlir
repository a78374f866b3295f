module attributes {tpk.structured = 1 : i32} {
  func.func public @vector_add(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg3: i32) attributes {tpk.kernel} {
    %c1024_i32 = arith.constant 1024 : i32
    %c1_i64 = arith.constant 1 : i64
    %c1024_i64 = arith.constant 1024 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = arith.extsi %arg3 : i32 to i64
    %1 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %2 = arith.muli %1, %c1024_i32 : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.subi %0, %3 : i64
    %5 = arith.maxsi %4, %c0_i64 : i64
    %6 = arith.minsi %5, %c1024_i64 : i64
    %7 = "tpk.load"(%arg0, %3, %c1_i64, %c0_i64, %6) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<1024xf32>
    %8 = "tpk.load"(%arg1, %3, %c1_i64, %c0_i64, %6) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<1024xf32>
    %9 = arith.addf %7, %8 : tensor<1024xf32>
    "tpk.store"(%arg2, %3, %c1_i64, %c0_i64, %6, %9) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<1024xf32>) -> ()
    return
  }
}

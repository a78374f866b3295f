module attributes {tpk.structured = 1 : i32} {
  func.func public @copy_tile(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32, %arg3: i32) attributes {tpk.kernel} {
    %c32_i32 = arith.constant 32 : i32
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %c32_i64 = arith.constant 32 : i64
    %c1_i64 = arith.constant 1 : i64
    %0 = arith.extsi %arg3 : i32 to i64
    %1 = arith.extsi %arg2 : i32 to i64
    %2 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %3 = arith.muli %2, %c32_i32 : i32
    %4 = arith.extsi %3 : i32 to i64
    %5 = "tpk.program_id"() {axis = 1 : i32} : () -> i32
    %6 = arith.muli %5, %c32_i32 : i32
    %7 = arith.extsi %6 : i32 to i64
    %8 = arith.subi %c0_i64, %4 : i64
    %9 = arith.maxsi %8, %c0_i64 : i64
    %10 = arith.minsi %9, %c32_i64 : i64
    %11 = arith.subi %1, %4 : i64
    %12 = arith.maxsi %11, %c0_i64 : i64
    %13 = arith.minsi %12, %c32_i64 : i64
    %14 = arith.subi %c0_i64, %7 : i64
    %15 = arith.maxsi %14, %c0_i64 : i64
    %16 = arith.minsi %15, %c32_i64 : i64
    %17 = arith.subi %0, %7 : i64
    %18 = arith.maxsi %17, %c0_i64 : i64
    %19 = arith.minsi %18, %c32_i64 : i64
    %20 = arith.muli %4, %0 : i64
    %21 = arith.addi %20, %7 : i64
    %22 = "tpk.load"(%arg0, %21, %0, %c1_i64, %10, %16, %13, %19, %cst) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, f32) -> tensor<32x32xf32>
    "tpk.store"(%arg1, %21, %0, %c1_i64, %10, %16, %13, %19, %22) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, tensor<32x32xf32>) -> ()
    return
  }
}

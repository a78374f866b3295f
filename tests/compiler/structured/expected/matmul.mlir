module attributes {tpk.structured = 1 : i32} {
  func.func public @matmul(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg3: i32, %arg4: i32, %arg5: i32, %arg6: i32, %arg7: i32, %arg8: i32) attributes {tpk.kernel, tpk.promises = array<i64: 3, 0, 0, 0, 64, 0, 7, 0, 1, 13, 2, 32, 2, 3, 32, 2, 6, 32, 0, 0, 0, 16, 3, 4, 7, 5, 7, 5, 6, 8, 2, 7, 32, 0, 31, 0, 12, 6, 11, 7, 10, 12, 5, 6, 13, 2, 8, 32, 7, 3, 15, 0, 63, 0, 12, 6, 17, 7, 15, 18, 5, 16, 19, 17, 9, 32, 17, 14, 32, 17, 20, 32>} {
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %c31_i32 = arith.constant 31 : i32
    %c0_i64 = arith.constant 0 : i64
    %c32_i64 = arith.constant 32 : i64
    %cst_0 = arith.constant 0.000000e+00 : f16
    %c64_i64 = arith.constant 64 : i64
    %c1_i64 = arith.constant 1 : i64
    %0 = arith.extsi %arg8 : i32 to i64
    %1 = arith.extsi %arg4 : i32 to i64
    %2 = arith.extsi %arg7 : i32 to i64
    %3 = arith.extsi %arg3 : i32 to i64
    %4 = arith.extsi %arg6 : i32 to i64
    %5 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %6 = arith.muli %5, %c64_i32 : i32
    %7 = arith.extsi %6 : i32 to i64
    %8 = "tpk.program_id"() {axis = 1 : i32} : () -> i32
    %9 = arith.muli %8, %c64_i32 : i32
    %10 = arith.extsi %9 : i32 to i64
    %11 = arith.addi %arg5, %c31_i32 : i32
    %12 = arith.divsi %11, %c32_i32 : i32
    %13 = arith.muli %arg7, %c32_i32 : i32
    %14 = arith.extsi %13 : i32 to i64
    %15:3 = scf.for %arg9 = %c0_i32 to %12 step %c1_i32 iter_args(%arg10 = %c0_i64, %arg11 = %c0_i64, %arg12 = %cst) -> (i64, i64, tensor<64x64xf32>)  : i32 {
      %25 = arith.muli %arg9, %c32_i32 : i32
      %26 = arith.subi %arg5, %25 : i32
      %27 = arith.extsi %26 : i32 to i64
      %28 = arith.maxsi %27, %c0_i64 : i64
      %29 = arith.minsi %28, %c32_i64 : i64
      %30 = "tpk.load"(%arg0, %arg10, %4, %c1_i64, %c0_i64, %c0_i64, %c64_i64, %29, %7, %3, %cst_0) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 1, 1, 0, 1>, wrap_dims = array<i64: 0>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, f16) -> tensor<64x32xf16>
      %31 = "tpk.load"(%arg1, %arg11, %2, %c1_i64, %c0_i64, %c0_i64, %29, %c64_i64, %10, %1, %cst_0) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 1, 1, 0, 1>, wrap_dims = array<i64: 1>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, f16) -> tensor<32x64xf16>
      %32 = linalg.matmul {tpk.input_precision = "tf32"} ins(%30, %31 : tensor<64x32xf16>, tensor<32x64xf16>) outs(%arg12 : tensor<64x64xf32>) -> tensor<64x64xf32>
      %33 = arith.addi %arg10, %c32_i64 : i64
      %34 = arith.addi %arg11, %14 : i64
      scf.yield %33, %34, %32 : i64, i64, tensor<64x64xf32>
    }
    %16 = arith.truncf %15#2 : tensor<64x64xf32> to tensor<64x64xf16>
    %17 = arith.subi %3, %7 : i64
    %18 = arith.maxsi %17, %c0_i64 : i64
    %19 = arith.minsi %18, %c64_i64 : i64
    %20 = arith.subi %1, %10 : i64
    %21 = arith.maxsi %20, %c0_i64 : i64
    %22 = arith.minsi %21, %c64_i64 : i64
    %23 = arith.muli %7, %0 : i64
    %24 = arith.addi %23, %10 : i64
    "tpk.store"(%arg2, %24, %0, %c1_i64, %c0_i64, %c0_i64, %19, %22, %16) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, tensor<64x64xf16>) -> ()
    return
  }
}

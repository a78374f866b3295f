module attributes {tpk.structured = 1 : i32} {
  func.func public @layer_norm(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f16}, %arg3: i32, %arg4: i32, %arg5: f32) attributes {tpk.kernel} {
    %c0_i32 = arith.constant 0 : i32
    %c256_i32 = arith.constant 256 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<256xf32>
    %cst_0 = arith.constant 0.000000e+00 : f16
    %c1_i64 = arith.constant 1 : i64
    %c256_i64 = arith.constant 256 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = arith.extsi %arg4 : i32 to i64
    %1 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %2 = arith.muli %1, %arg3 : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = scf.for %arg6 = %c0_i32 to %arg4 step %c256_i32 iter_args(%arg7 = %cst) -> (tensor<256xf32>)  : i32 {
      %9 = arith.extsi %arg6 : i32 to i64
      %10 = arith.subi %0, %9 : i64
      %11 = arith.maxsi %10, %c0_i64 : i64
      %12 = arith.minsi %11, %c256_i64 : i64
      %13 = arith.addi %3, %9 : i64
      %14 = "tpk.load"(%arg0, %13, %c1_i64, %c0_i64, %12, %cst_0) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, f16) -> tensor<256xf16>
      %15 = arith.extf %14 : tensor<256xf16> to tensor<256xf32>
      %16 = arith.addf %arg7, %15 : tensor<256xf32>
      scf.yield %16 : tensor<256xf32>
    }
    %5 = "tpk.reduce"(%4) ({
    ^bb0(%arg6: f32, %arg7: f32):
      %9 = arith.addf %arg6, %arg7 : f32
      "tpk.yield"(%9) : (f32) -> ()
    }) {axis = 0 : i32} : (tensor<256xf32>) -> f32
    %6 = arith.sitofp %arg4 : i32 to f32
    %7 = arith.divf %5, %6 : f32
    %splat = tensor.splat %7 : tensor<256xf32>
    %8 = math.rsqrt %arg5 : f32
    %splat_1 = tensor.splat %8 : tensor<256xf32>
    scf.for %arg6 = %c0_i32 to %arg4 step %c256_i32  : i32 {
      %9 = arith.extsi %arg6 : i32 to i64
      %10 = arith.subi %0, %9 : i64
      %11 = arith.maxsi %10, %c0_i64 : i64
      %12 = arith.minsi %11, %c256_i64 : i64
      %13 = arith.addi %3, %9 : i64
      %14 = "tpk.load"(%arg0, %13, %c1_i64, %c0_i64, %12, %cst_0) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, f16) -> tensor<256xf16>
      %15 = arith.extf %14 : tensor<256xf16> to tensor<256xf32>
      %16 = arith.subf %15, %splat : tensor<256xf32>
      %17 = arith.mulf %16, %splat_1 : tensor<256xf32>
      %18 = "tpk.load"(%arg2, %9, %c1_i64, %c0_i64, %12) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<256xf16>
      %19 = arith.extf %18 : tensor<256xf16> to tensor<256xf32>
      %20 = arith.mulf %17, %19 : tensor<256xf32>
      %21 = arith.truncf %20 : tensor<256xf32> to tensor<256xf16>
      "tpk.store"(%arg1, %13, %c1_i64, %c0_i64, %12, %21) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<256xf16>) -> ()
    }
    return
  }
}

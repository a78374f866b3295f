module attributes {tpk.structured = 1 : i32} {
  func.func public @mixed_mask(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = i32}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg3: i32) attributes {tpk.kernel} {
    %cst = arith.constant dense<0> : tensor<128xi32>
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %c1_i64 = arith.constant 1 : i64
    %c128_i64 = arith.constant 128 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = arith.extsi %arg3 : i32 to i64
    %1 = arith.maxsi %0, %c0_i64 : i64
    %2 = arith.minsi %1, %c128_i64 : i64
    %3 = "tpk.load"(%arg1, %c0_i64, %c1_i64, %c0_i64, %2, %c0_i32) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i32) -> tensor<128xi32>
    %4 = arith.cmpi ne, %3, %cst : tensor<128xi32>
    %5 = "tpk.load"(%arg0, %c0_i64, %c1_i64, %c0_i64, %2, %4, %cst_0) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<128xi1>, f32) -> tensor<128xf32>
    "tpk.store"(%arg2, %c0_i64, %c1_i64, %5) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<128xf32>) -> ()
    return
  }
}

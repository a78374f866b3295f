module attributes {tpk.structured = 1 : i32} {
  func.func public @moving_index(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32) attributes {tpk.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c1_i64 = arith.constant 1 : i64
    %c64_i64 = arith.constant 64 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = "tpk.range"() {start = 0 : i32} : () -> tensor<64xi32>
    %1:2 = scf.while (%arg3 = %c0_i64, %arg4 = %cst) : (i64, tensor<64xf32>) -> (i64, tensor<64xf32>) {
      %2 = arith.trunci %arg3 : i64 to i32
      %splat = tensor.splat %2 : tensor<64xi32>
      %3 = arith.addi %splat, %0 : tensor<64xi32>
      %4 = "tpk.reduce"(%3) ({
      ^bb0(%arg5: i32, %arg6: i32):
        %6 = arith.maxsi %arg5, %arg6 : i32
        "tpk.yield"(%6) : (i32) -> ()
      }) {axis = 0 : i32} : (tensor<64xi32>) -> i32
      %5 = arith.cmpi slt, %4, %arg2 : i32
      scf.condition(%5) %arg3, %arg4 : i64, tensor<64xf32>
    } do {
    ^bb0(%arg3: i64, %arg4: tensor<64xf32>):
      %2 = arith.trunci %arg3 : i64 to i32
      %3 = arith.extsi %2 : i32 to i64
      %4 = "tpk.load"(%arg0, %3, %c1_i64) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64) -> tensor<64xf32>
      %5 = arith.addf %arg4, %4 : tensor<64xf32>
      %6 = arith.addi %arg3, %c64_i64 : i64
      scf.yield %6, %5 : i64, tensor<64xf32>
    }
    "tpk.store"(%arg1, %c0_i64, %c1_i64, %1#1) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<64xf32>) -> ()
    return
  }
}

module attributes {tpk.structured = 1 : i32} {
  func.func public @softmax(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32, %arg3: i32, %arg4: i32) attributes {tpk.kernel} {
    %cst = arith.constant 0xFF800000 : f32
    %c1_i64 = arith.constant 1 : i64
    %c1024_i64 = arith.constant 1024 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = arith.extsi %arg4 : i32 to i64
    %1 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %2 = arith.muli %1, %arg3 : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.maxsi %0, %c0_i64 : i64
    %5 = arith.minsi %4, %c1024_i64 : i64
    %6 = "tpk.load"(%arg1, %3, %c1_i64, %c0_i64, %5, %cst) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, f32) -> tensor<1024xf32>
    %7 = "tpk.reduce"(%6) ({
    ^bb0(%arg5: f32, %arg6: f32):
      %14 = arith.maxnumf %arg5, %arg6 : f32
      "tpk.yield"(%14) : (f32) -> ()
    }) {axis = 0 : i32} : (tensor<1024xf32>) -> f32
    %splat = tensor.splat %7 : tensor<1024xf32>
    %8 = arith.subf %6, %splat : tensor<1024xf32>
    %9 = math.exp %8 : tensor<1024xf32>
    %10 = arith.muli %1, %arg2 : i32
    %11 = arith.extsi %10 : i32 to i64
    %12 = "tpk.reduce"(%9) ({
    ^bb0(%arg5: f32, %arg6: f32):
      %14 = arith.addf %arg5, %arg6 : f32
      "tpk.yield"(%14) : (f32) -> ()
    }) {axis = 0 : i32} : (tensor<1024xf32>) -> f32
    %splat_0 = tensor.splat %12 : tensor<1024xf32>
    %13 = arith.divf %9, %splat_0 : tensor<1024xf32>
    "tpk.store"(%arg0, %11, %c1_i64, %c0_i64, %5, %13) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<1024xf32>) -> ()
    return
  }
}

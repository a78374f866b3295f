module attributes {tpk.structured = 1 : i32} {
  func.func public @gather_rows(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = i32}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg3: i32, %arg4: i32) attributes {tpk.kernel, tpk.promises = array<i64: 3, 0, 0, 0, 32, 0, 7, 0, 1, 13, 2, 32, 2, 4, 32, 7, 3, 4, 0, 0, 0, 0, 31, 0, 12, 6, 7, 7, 4, 8, 5, 5, 9, 17, 10, 32>} {
    %c32_i32 = arith.constant 32 : i32
    %c0_i32 = arith.constant 0 : i32
    %c0_i64 = arith.constant 0 : i64
    %c32_i64 = arith.constant 32 : i64
    %c1_i64 = arith.constant 1 : i64
    %c64_i64 = arith.constant 64 : i64
    %0 = arith.extsi %arg4 : i32 to i64
    %1 = arith.extsi %arg3 : i32 to i64
    %2 = "tpk.range"() {start = 0 : i32} : () -> tensor<64xi32>
    %3 = "tpk.range"() {start = 0 : i32} : () -> tensor<32xi32>
    %4 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %5 = arith.muli %4, %c32_i32 : i32
    %6 = arith.extsi %5 : i32 to i64
    %splat = tensor.splat %5 : tensor<32xi32>
    %7 = arith.addi %splat, %3 : tensor<32xi32>
    %8 = arith.subi %1, %6 : i64
    %9 = arith.maxsi %8, %c0_i64 : i64
    %10 = arith.minsi %9, %c32_i64 : i64
    %11 = "tpk.load"(%arg1, %6, %c1_i64, %c0_i64, %10, %c0_i32) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i32) -> tensor<32xi32>
    %expanded = tensor.expand_shape %7 [[0, 1]] output_shape [32, 1] : tensor<32xi32> into tensor<32x1xi32>
    %splat_0 = tensor.splat %arg3 : tensor<32x1xi32>
    %12 = arith.cmpi slt, %expanded, %splat_0 : tensor<32x1xi32>
    %expanded_1 = tensor.expand_shape %2 [[0, 1]] output_shape [1, 64] : tensor<64xi32> into tensor<1x64xi32>
    %splat_2 = tensor.splat %arg4 : tensor<1x64xi32>
    %13 = arith.cmpi slt, %expanded_1, %splat_2 : tensor<1x64xi32>
    %collapsed = tensor.collapse_shape %12 [[0, 1]] : tensor<32x1xi1> into tensor<32xi1>
    %14 = tensor.empty() : tensor<32x64xi1>
    %broadcasted = linalg.broadcast ins(%collapsed : tensor<32xi1>) outs(%14 : tensor<32x64xi1>) dimensions = [1] 
    %collapsed_3 = tensor.collapse_shape %13 [[0, 1]] : tensor<1x64xi1> into tensor<64xi1>
    %broadcasted_4 = linalg.broadcast ins(%collapsed_3 : tensor<64xi1>) outs(%14 : tensor<32x64xi1>) dimensions = [0] 
    %15 = arith.andi %broadcasted, %broadcasted_4 : tensor<32x64xi1>
    %expanded_5 = tensor.expand_shape %11 [[0, 1]] output_shape [32, 1] : tensor<32xi32> into tensor<32x1xi32>
    %splat_6 = tensor.splat %arg4 : tensor<32x1xi32>
    %16 = arith.muli %expanded_5, %splat_6 : tensor<32x1xi32>
    %collapsed_7 = tensor.collapse_shape %16 [[0, 1]] : tensor<32x1xi32> into tensor<32xi32>
    %17 = tensor.empty() : tensor<32x64xi32>
    %broadcasted_8 = linalg.broadcast ins(%collapsed_7 : tensor<32xi32>) outs(%17 : tensor<32x64xi32>) dimensions = [1] 
    %broadcasted_9 = linalg.broadcast ins(%2 : tensor<64xi32>) outs(%17 : tensor<32x64xi32>) dimensions = [0] 
    %18 = arith.extsi %broadcasted_9 : tensor<32x64xi32> to tensor<32x64xi64>
    %19 = arith.extsi %broadcasted_8 : tensor<32x64xi32> to tensor<32x64xi64>
    %20 = arith.addi %19, %18 : tensor<32x64xi64>
    %21 = "tpk.gather"(%arg0, %20, %15) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!llvm.ptr, tensor<32x64xi64>, tensor<32x64xi1>) -> tensor<32x64xf32>
    %22 = arith.maxsi %0, %c0_i64 : i64
    %23 = arith.minsi %22, %c64_i64 : i64
    %24 = arith.muli %6, %0 : i64
    "tpk.store"(%arg2, %24, %0, %c1_i64, %c0_i64, %c0_i64, %10, %23, %21) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 2, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, tensor<32x64xf32>) -> ()
    return
  }
}

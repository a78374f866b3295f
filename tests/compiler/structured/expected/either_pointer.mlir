module attributes {tpk.structured = 1 : i32} {
  func.func public @either_pointer(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg3: i32) attributes {tpk.kernel} {
    %c4_i32 = arith.constant 4 : i32
    %c8_i32 = arith.constant 8 : i32
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %0 = arith.extsi %arg3 : i32 to i64
    %1 = arith.cmpi sgt, %arg3, %c4_i32 : i32
    %2 = arith.select %1, %arg0, %arg1 : !llvm.ptr
    %3 = arith.cmpi sgt, %arg3, %c8_i32 : i32
    %4 = arith.select %3, %c0_i64, %0 : i64
    %5 = "tpk.load"(%2, %c0_i64, %c1_i64) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64) -> tensor<64xf32>
    %6 = "tpk.load"(%arg0, %4, %c1_i64) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64) -> tensor<64xf32>
    %7 = arith.addf %5, %6 : tensor<64xf32>
    "tpk.store"(%arg2, %c0_i64, %c1_i64, %7) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<64xf32>) -> ()
    return
  }
}

module attributes {tpk.structured = 1 : i32} {
  func.func public @early_return(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32) attributes {tpk.kernel} {
    %0 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %1 = arith.extsi %0 : i32 to i64
    %2 = arith.cmpi sge, %0, %arg2 : i32
    scf.if %2 {
    } else {
      %3 = "tpk.load"(%arg0, %1) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64) -> f32
      "tpk.store"(%arg1, %1, %3) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, f32) -> ()
    }
    return
  }
}

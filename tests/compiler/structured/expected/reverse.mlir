module attributes {tpk.structured = 1 : i32} {
  func.func public @reverse(%arg0: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg1: !llvm.ptr {tpk.divisibility = 16 : i32, tpk.pointee = f32}, %arg2: i32) attributes {tpk.kernel} {
    %c2147483521_i64 = arith.constant 2147483521 : i64
    %c128_i32 = arith.constant 128 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst = arith.constant dense<0> : tensor<128xi32>
    %c1_i64 = arith.constant 1 : i64
    %c0_i64 = arith.constant 0 : i64
    %c128_i64 = arith.constant 128 : i64
    %c-1_i64 = arith.constant -1 : i64
    %c2147483648_i64 = arith.constant 2147483648 : i64
    %c4294967296_i64 = arith.constant 4294967296 : i64
    %0 = arith.extsi %arg2 : i32 to i64
    %1 = "tpk.range"() {start = 0 : i32} : () -> tensor<128xi32>
    %2 = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %3 = arith.muli %2, %c128_i32 : i32
    %4 = arith.extsi %3 : i32 to i64
    %splat = tensor.splat %3 : tensor<128xi32>
    %5 = arith.addi %splat, %1 : tensor<128xi32>
    %6 = arith.subi %arg2, %c1_i32 : i32
    %7 = arith.extsi %6 : i32 to i64
    %splat_0 = tensor.splat %6 : tensor<128xi32>
    %8 = arith.subi %splat_0, %5 : tensor<128xi32>
    %9 = arith.cmpi sge, %8, %cst : tensor<128xi32>
    %10 = arith.subi %7, %4 : i64
    %11 = arith.addi %10, %c1_i64 : i64
    %12 = arith.maxsi %11, %c0_i64 : i64
    %13 = arith.minsi %12, %c128_i64 : i64
    %14 = arith.addi %10, %c2147483648_i64 : i64
    %15 = arith.cmpi ult, %14, %c4294967296_i64 : i64
    %16 = arith.addi %10, %c2147483521_i64 : i64
    %17 = arith.cmpi ult, %16, %c4294967296_i64 : i64
    %18 = arith.andi %15, %17 : i1
    %19 = arith.select %18, %13, %c128_i64 : i64
    %splat_1 = tensor.splat %18 : tensor<128xi1>
    %20 = arith.ori %splat_1, %9 : tensor<128xi1>
    %21 = arith.subi %19, %c1_i64 : i64
    %22 = arith.subi %10, %21 : i64
    %23 = arith.addi %22, %c2147483648_i64 : i64
    %24 = arith.cmpi ult, %23, %c4294967296_i64 : i64
    %25 = arith.andi %15, %24 : i1
    %26 = arith.cmpi sle, %19, %c0_i64 : i64
    %27 = arith.ori %25, %26 : i1
    %28 = scf.if %27 -> (tensor<128xf32>) {
      %32 = "tpk.load"(%arg0, %10, %c-1_i64, %c0_i64, %19, %20) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1, 0>} : (!llvm.ptr, i64, i64, i64, i64, tensor<128xi1>) -> tensor<128xf32>
      scf.yield %32 : tensor<128xf32>
    } else {
      %32 = "tpk.gather"(%arg0, %8, %9) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!llvm.ptr, tensor<128xi32>, tensor<128xi1>) -> tensor<128xf32>
      scf.yield %32 : tensor<128xf32>
    }
    %29 = arith.subi %0, %4 : i64
    %30 = arith.maxsi %29, %c0_i64 : i64
    %31 = arith.minsi %30, %c128_i64 : i64
    "tpk.store"(%arg1, %4, %c1_i64, %c0_i64, %31, %28) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, i64, i64, tensor<128xf32>) -> ()
    return
  }
}

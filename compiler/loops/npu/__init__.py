"""The lowering of operations that drive a chip's units: calls of the intrinsics in ``tpk_npu.h``."""

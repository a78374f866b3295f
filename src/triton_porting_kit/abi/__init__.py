"""The interface between compiler, launcher and driver, defined once, below all three of them.

`kernel`: symbols of a kernel's object file, and the version of the kernel ABI. `block`: the layout of the argument
block. `launching`: the native launch routine and its codes. `elements`: the element types. `header`: the same for C++,
``include/tpk_abi.h``. `npu`: the intrinsics of chips with on-chip memory, ``include/tpk_npu.h``. These modules import
each other, the kit's errors, and the standard library.
"""

"""What passes between compiler, launcher and driver, defined once, below all three of them.

`kernel`: symbols of a kernel's object file and the version of the kernel ABI. `block`: where each argument lies.
`launching`: the native launch routine and its codes. `header`: the same for C++, as ``include/tpk_abi.h`` has it. These
modules import each other, the kit's errors, and the standard library.
"""

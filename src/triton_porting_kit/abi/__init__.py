"""What passes between compiler, launcher and driver, defined once, below all three of them.

`kernel`: symbols of a kernel's object file and the version of the kernel ABI. `block`: where each argument lies.
`launching`: the native launch routine and its codes. `elements`: the element types. `header`: what C++ needs of
that, ``include/tpk_abi.h``. These modules import each other, the kit's errors, and the standard library.
"""

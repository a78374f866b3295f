"""C++ source from loops, and its build by a vendor's compiler: for chips whose only toolchain is a C++ compiler."""

"""C++ source from loops, built by a vendor's compiler: for chips whose only toolchain is a C++ compiler."""

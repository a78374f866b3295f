"""The reference for chips whose runtime is OpenCL: kernels as OpenCL C, built by the driver's compiler."""

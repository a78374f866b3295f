"""From a Triton signature to a kernel argument block and a launch."""

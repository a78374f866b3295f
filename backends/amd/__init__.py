"""The AMD reference backend: Triton's own GPU passes to AMD machine code, launched through HIP."""

"""The AMD reference backend: Triton's own GPU passes to AMD's machine code, launched through HIP."""

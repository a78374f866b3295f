"""Matrix products: K blocking, packing, software prefetch and early stores, and the micro-kernels."""

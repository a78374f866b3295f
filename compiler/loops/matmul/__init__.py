"""Matrix products: a planner of what is blocked, packed, prefetched and stored when, and micro-kernels."""

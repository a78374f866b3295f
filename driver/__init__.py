"""The device hooks, device arrays, and the adapter to Triton's driver interface."""

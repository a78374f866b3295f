"""The level `runtime`: the hooks of the kit's `Device`, and what any backend does between a launch and its result."""

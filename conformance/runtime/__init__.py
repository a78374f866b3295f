"""The level `runtime`: the hooks of the kit's `Device`, and launches on any backend."""

"""The level `registration`: how Triton finds a backend, the backend's interface to Triton, and the cache."""

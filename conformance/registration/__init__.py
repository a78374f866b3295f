"""The level `registration`: how Triton finds a backend, what the backend promises it, and what the cache relies on."""

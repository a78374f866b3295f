"""Reference backends, each only what a vendor would write."""

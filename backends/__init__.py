"""Reference backends. Each contains only what a vendor would write."""

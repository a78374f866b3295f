"""The self-test of the suite: a backend with one planted fault at a time, and the checks that must catch it."""

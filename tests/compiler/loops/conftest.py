"""Lets the tests of this folder import `native_functions` from it."""

"""Shared by the tests of this folder, which also import `ttir_source` from it."""

import triton  # noqa: F401  (Triton loads the kit's backends: it has to come before they are half imported)

"""The suite tested itself: a backend with one planted fault at a time, and the checks that must notice."""

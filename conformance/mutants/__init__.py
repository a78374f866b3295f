"""The suite judged by mechanical mutants of the kit's own sources: a score that nobody can tune."""

"""Mutation testing of the suite: mechanical mutants of the kit's own sources give a score that nobody can tune."""

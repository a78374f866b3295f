"""Mutation testing of the suite: the share of mechanical mutants of the kit's own sources that the checks catch."""

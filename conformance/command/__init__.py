"""`tpk conform`: the suite as a command."""

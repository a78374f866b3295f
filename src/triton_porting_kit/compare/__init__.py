"""`tpk compare`: judge each launch of a program against the CPU reference."""

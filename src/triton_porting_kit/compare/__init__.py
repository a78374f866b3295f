"""Every launch of a program judged by itself, against the CPU reference: `tpk compare`."""

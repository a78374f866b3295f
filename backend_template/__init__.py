"""What `tpk new` copies."""

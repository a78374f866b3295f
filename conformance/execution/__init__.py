"""Running checks in worker processes: a crash, a hang or a lost device affects only one check."""

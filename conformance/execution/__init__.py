"""Running checks in processes of their own: what crashes, hangs or loses its device costs one check."""

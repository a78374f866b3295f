"""The collections: one module each, with a `COLLECTION`. References are written here, in operations of torch."""
